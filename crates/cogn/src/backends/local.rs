//! The embedded model as a back-end of the configuration.

use std::sync::Arc;

use engine::port::Upstream;

use super::shelf::Unavailable;
use crate::config::Backend;

/// The model behind a back-end of kind `local`, or why there is none.
pub(super) fn open(_backend: &Backend) -> Result<Arc<dyn Upstream>, Unavailable> {
    Err(Unavailable {
        reason: String::from("this cogn was built without the embedded model (E4001)"),
        hint: Some(String::from(
            "install one that has it: cargo install --path crates/cogn --features local; or set a vendor's key, \
             such as OPENAI_API_KEY",
        )),
    })
}
