//! Detects the dialect of a golden test and compares an answer with it.

use jsonschema::Draft;
use serde_json::{Map, Value};

use super::Mismatch;
use super::rules::check_rules;
use super::subset::compare;
use crate::document::join;
use crate::limits;
use crate::module::Module;
use crate::schema::CompiledSchema;

/// Top-level keys of an envelope. A test with these keys only is compared with the envelope, any other with
/// the data.
const PARTS: &[&str] = &["ok", "meta", "data", "error", "partial_data"];

/// All mismatches between `envelope` and `expected`; empty means that the test passes.
pub fn compare_answer(module: &Module, expected: &Value, envelope: &Value) -> Vec<Mismatch> {
    let Value::Object(map) = expected else {
        return vec![Mismatch::new("", "the expected answer is not an object")];
    };
    let mut found = Vec::new();
    if map.contains_key("$validate") || map.contains_key("$example") {
        check_schemas(module, map, envelope, &mut found);
    } else {
        if map.contains_key("_validate") || map.contains_key("_contains") {
            check_rules(map, envelope, &mut found);
        }
        check_answer(map, envelope, &mut found);
    }
    found.truncate(limits::MISMATCHES_MAX);
    found
}

/// Every value in the test must be present; fields not in the test are ignored.
fn check_answer(map: &Map<String, Value>, envelope: &Value, found: &mut Vec<Mismatch>) {
    let own: Map<String, Value> = map
        .iter()
        .filter(|(key, _)| !key.starts_with('_') && !key.starts_with('$'))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if own.is_empty() {
        return;
    }
    let about_envelope = own.contains_key("ok") || own.keys().all(|key| PARTS.contains(&key.as_str()));
    if about_envelope {
        compare(&Value::Object(own), Some(envelope), "", found);
    } else {
        compare(&Value::Object(own), envelope.get("data"), "/data", found);
    }
}

/// `{$validate: {data: <schema>}, $example: <envelope>}`: only the schemas are checked. If there is only an
/// example, it is the expected answer.
fn check_schemas(module: &Module, map: &Map<String, Value>, envelope: &Value, found: &mut Vec<Mismatch>) {
    let Some(schemas) = map.get("$validate").and_then(Value::as_object) else {
        if let Some(Value::Object(example)) = map.get("$example") {
            check_answer(example, envelope, found);
        }
        return;
    };
    for (part, schema) in schemas {
        let pointer = join("", part);
        let Some(actual) = envelope.get(part) else {
            let absent = Mismatch::new(&pointer, format!("the answer has no `{part}`"));
            found.push(absent);
            continue;
        };
        let validator = match CompiledSchema::new(with_definitions(module, schema), Draft::Draft7) {
            Ok(validator) => validator,
            Err(error) => {
                let message = format!("the schema of `{part}` in the test is invalid: {error}");
                found.push(Mismatch::new(&pointer, message));
                continue;
            }
        };
        for error in validator.errors(actual).take(limits::MISMATCHES_MAX) {
            let place = format!("{pointer}{}", error.instance_path());
            let value = envelope.pointer(&place);
            found.push(Mismatch::new(place.clone(), error.to_string()).values(None, value));
        }
    }
}

/// Adds the definitions of the module's schema, which a test may reference.
fn with_definitions(module: &Module, schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let (Value::Object(map), Value::Object(document)) = (&mut schema, module.contract.document()) {
        for key in ["$defs", "definitions"] {
            if let Some(definitions) = document.get(key).filter(|_| !map.contains_key(key)) {
                map.insert(String::from(key), definitions.clone());
            }
        }
    }
    schema
}
