//! What a module hands back as context: the types it declares, in the form it declares.

use serde_json::{Map, Value};

use super::{EMITTED_KEY, breaches};
use crate::module::Module;

/// Takes `_emitted_context` from an answer's annotations and gives back what may leave. A value that does
/// not fit its schema stays behind: context is a convenience, and no answer fails for it.
pub fn emitted(module: &Module, annotations: &mut Map<String, Value>) -> Map<String, Value> {
    let Some(Value::Object(given)) = annotations.shift_remove(EMITTED_KEY) else {
        return Map::new();
    };
    let declared = |kind: &str| {
        module
            .manifest
            .context
            .emits
            .iter()
            .find(|emit| emit.kind == kind)
    };
    let allowed = given.into_iter().filter(|(kind, value)| {
        declared(kind).is_some_and(|emit| {
            let schema = emit.schema.as_deref();
            schema.is_none_or(|reference| breaches(module, reference, value).is_empty())
        })
    });
    allowed.collect()
}
