//! Explicit context: what a caller hands a module beside its input under `_context`, and what the module
//! hands back under `_emitted_context`. Nothing passes in either direction that the module does not declare.

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

/// The key of an input under which context stands.
pub const CONTEXT_KEY: &str = "_context";
/// The key beside an envelope under which context is handed back.
pub const EMITTED_KEY: &str = "_emitted_context";

/// What `value` breaks in the schema that `reference` names.
fn breaches(module: &Module, reference: &str, value: &Value) -> Vec<ShapeViolation> {
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

/// Puts `context` into an input, or takes the key away where there is none.
pub fn put(input: &mut Map<String, Value>, context: Map<String, Value>) {
    if context.is_empty() {
        input.shift_remove(CONTEXT_KEY);
    } else {
        input.insert(String::from(CONTEXT_KEY), Value::Object(context));
    }
}
