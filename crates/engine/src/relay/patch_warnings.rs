//! Patches for a back-end that receives no JSON body: they have no effect there, which is reported as a
//! warning, or as an error if the request is strict. Patches of a body are applied where the body is encoded.

use ir::adaptation::{Adaptation, Component, Ledger};
use ir::patch::{Target, apply_without_body};
use ir::{Error, Request};

use crate::port::Upstream;

pub(super) fn notices(upstream: &dyn Upstream, request: &Request) -> Result<Vec<Adaptation>, Error> {
    if request.patches.is_empty() || upstream.supports_patches() {
        return Ok(Vec::new());
    }
    let backend = upstream.backend();
    let asked = request.model().filter(|model| !model.is_empty());
    let actual = Target {
        backend: Some(backend.name.clone()),
        kind: Some(backend.kind.clone()),
        model: asked.map(String::from).or_else(|| backend.model.clone()),
    };
    let mut ledger = Ledger::new(Component::Adapter);
    let degradation = request.degradation.unwrap_or_default();
    apply_without_body(&request.patches, &actual, degradation, &mut ledger)?;
    Ok(ledger.into_entries())
}
