//! Patches for a back-end that is sent no body: they change nothing there, and that is said, or is the end of it
//! where the request stands no loss. Patches of a body are the business of whoever writes it.

use ir::adaptation::{Adaptation, Ledger, Component};
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
