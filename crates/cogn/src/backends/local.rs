//! The embedded model as a back-end of the configuration.

use std::sync::Arc;

use engine::port::Upstream;

use super::catalog::Unavailable;
use crate::config::Backend;
use crate::models::{self, ModelUnavailable};

/// Name of the embedded model if it is not configured.
pub(super) const NAME: &str = "local";

/// The model behind a back-end of kind `local`, or why there is none.
pub(super) fn open(backend: &Backend) -> Result<Arc<dyn Upstream>, Unavailable> {
    let model = backend.model.as_deref().or(backend.default_model.as_deref());
    let opened = match backend.embeds() {
        true => models::encoder(&backend.name, model),
        false => models::embedded(&backend.name, model),
    };
    opened.map_err(|ModelUnavailable { reason, hint }| Unavailable {
        reason,
        hint: Some(hint),
    })
}
