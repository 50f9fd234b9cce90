//! The contract as it is shown to callers who check inputs and answers themselves: complete schemas of an
//! input and of an envelope. They let through whatever the runtime lets through, and say less rather than
//! lean on something that the reader does not have.

use jsonschema::Draft;
use serde_json::{Map, Value, json};

use super::output::around;
use crate::module::Module;
use crate::schema::{Contract, Section, extract, stands_alone};

/// What an input looks like: always an object. A module without a schema takes free text.
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

/// What an envelope of the module looks like, good or not.
pub fn envelope_schema(module: &Module) -> Map<String, Value> {
    let manifest = &module.manifest;
    let contract = &module.contract;
    let answers = contract.for_answers(manifest.strictness, manifest.enums.strategy);
    let mut schema = around(answers);
    if !stands_alone(&schema) {
        schema = around(&Contract::default());
    }
    // That a field must not be there is said by a bare `false`, which many readers cannot read; they have
    // no need to hear it either.
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

/// An object in the first place, and in the dialect it was written in: readers who find none named take the
/// newest, and under that a schema of older days may mean something else.
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
