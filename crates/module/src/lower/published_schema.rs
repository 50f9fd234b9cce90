//! The contract as published to callers that validate inputs and answers themselves: self-contained schemas
//! of an input and of an envelope. They accept everything that the runtime accepts, and are less strict
//! rather than refer to anything that the caller does not have.

use jsonschema::Draft;
use serde_json::{Map, Value, json};

use super::output::around;
use crate::module::Module;
use crate::schema::{Contract, Section, extract, stands_alone};

/// The schema of an input: always an object. A module without a schema accepts free text.
pub fn input_schema(module: &Module) -> Map<String, Value> {
    let contract = &module.contract;
    let own = contract
        .schema(Section::Input)
        .filter(|schema| schema.is_object());
    let mut schema = own.cloned().unwrap_or_else(free_text);
    extract(&mut schema, contract, Section::Input, "#");
    if !stands_alone(&schema) {
        schema = json!({"description": "The module's input."});
    }
    complete(schema, contract)
}

/// The schema of an envelope of the module, successful or failed.
pub fn envelope_schema(module: &Module) -> Map<String, Value> {
    let contract = &module.contract;
    let mut schema = around(module.answer_contract());
    if !stands_alone(&schema) {
        schema = around(&Contract::default());
    }
    // A bare `false` forbids a field, but many readers do not support it, and they do not need the rule.
    for branch in ["then", "else"] {
        if let Some(Value::Object(branch)) = schema.get_mut(branch) {
            branch.remove("properties");
        }
    }
    complete(schema, contract)
}

fn free_text() -> Value {
    json!({
        "type": "object",
        "properties": {"query": {"type": "string", "description": "What the module is to work on."}}
    })
}

/// Adds the type `object` and the dialect of the document: validators assume the newest dialect if none is
/// named, under which an older schema may have another meaning.
fn complete(schema: Value, contract: &Contract) -> Map<String, Value> {
    let dialect = match contract.draft() {
        Draft::Draft4 => Some("http://json-schema.org/draft-04/schema#"),
        Draft::Draft6 => Some("http://json-schema.org/draft-06/schema#"),
        Draft::Draft7 => Some("http://json-schema.org/draft-07/schema#"),
        _ => None,
    };
    let mut whole = Map::new();
    whole.extend(dialect.map(|dialect| (String::from("$schema"), Value::from(dialect))));
    whole.insert(String::from("type"), Value::from("object"));
    if let Value::Object(schema) = schema {
        let kept = schema
            .into_iter()
            .filter(|(key, _)| !matches!(key.as_str(), "$id" | "$schema" | "type"));
        whole.extend(kept);
    }
    whole
}
