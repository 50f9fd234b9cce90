//! Applies the patches of a request to the encoded body of one back-end. Headers and URL come from the
//! configuration only and cannot be patched.

use ir::adaptation::Ledger;
use ir::patch::{Target, apply};
use ir::{Error, Request};
use serde_json::Value;

use super::HttpInner;

pub(super) fn patch(
    body: &mut Value,
    request: &Request,
    instance: &HttpInner,
    model: Option<&str>,
    ledger: &mut Ledger,
) -> Result<(), Error> {
    if request.patches.is_empty() {
        return Ok(());
    }
    let actual = Target {
        backend: Some(instance.options.name.clone()),
        kind: Some(String::from(instance.vendor.kind)),
        model: model.map(String::from),
    };
    let degradation = request.degradation.unwrap_or_default();
    apply(body, &request.patches, &actual, degradation, ledger)
}
