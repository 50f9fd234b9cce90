//! Outgoing context: filters `_emitted_context` by the types and forms that a module declares.

use serde_json::{Map, Value};

use super::{EMITTED_KEY, violations};
use crate::module::Module;

/// Removes `_emitted_context` from an answer's annotations and returns the allowed part. A value that
/// violates its schema is dropped; invalid context is never an error of the answer.
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
            schema.is_none_or(|reference| violations(module, reference, value).is_empty())
        })
    });
    allowed.collect()
}
