//! Explicit context: data that a caller passes to a module under `_context`, and data that the module returns
//! under `_emitted_context`. Only types that the module declares pass in either direction.

mod incoming;
mod outgoing;
mod sanitise;
#[cfg(test)]
mod tests;

pub use incoming::{AcceptedContext, admit};
pub use outgoing::emitted;

use serde_json::{Map, Value};

use crate::envelope::{ShapeViolation, check_part};
use crate::module::Module;

/// The input key of the context.
pub const CONTEXT_KEY: &str = "_context";
/// The annotation key of emitted context.
pub const EMITTED_KEY: &str = "_emitted_context";

/// The violations of `value` against the schema that `reference` names.
fn violations(module: &Module, reference: &str, value: &Value) -> Vec<ShapeViolation> {
    let Some(contract) = module.context_schemas.get(reference) else {
        return vec![ShapeViolation::new(
            "",
            "schema",
            format!("`{reference}` cannot be read"),
        )];
    };
    let mut found = Vec::new();
    if let Err(error) = check_part(contract, value, &mut found) {
        found.push(ShapeViolation::new("", "schema", error.message));
    }
    found
}

/// Sets the `_context` of an input, or removes the key if `context` is empty.
pub fn put(input: &mut Map<String, Value>, context: Map<String, Value>) {
    if context.is_empty() {
        input.shift_remove(CONTEXT_KEY);
    } else {
        input.insert(String::from(CONTEXT_KEY), Value::Object(context));
    }
}
