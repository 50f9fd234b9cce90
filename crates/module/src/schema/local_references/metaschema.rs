//! The metaschemas of the drafts: a schema that refers to that of its own draft gets a copy among its
//! definitions, under the URI that it refers to.

use jsonschema::Draft;
use referencing::meta;
use serde_json::{Map, Value, json};

const DRAFT7: &str = "http://json-schema.org/draft-07/schema";
const DRAFT6: &str = "http://json-schema.org/draft-06/schema";
const DRAFT4: &str = "http://json-schema.org/draft-04/schema";
const DRAFT202012: &str = "https://json-schema.org/draft/2020-12/schema";

/// Adds the metaschema if a reference names it.
pub(super) fn embed(schema: &mut Value, draft: Draft) {
    let (uri, group) = match draft {
        Draft::Draft4 => (DRAFT4, "definitions"),
        Draft::Draft6 => (DRAFT6, "definitions"),
        Draft::Draft7 => (DRAFT7, "definitions"),
        Draft::Draft202012 => (DRAFT202012, "$defs"),
        _ => return,
    };
    if !mentions(schema, uri) {
        return;
    }
    let Value::Object(root) = schema else { return };
    let definitions = root.entry(group).or_insert_with(|| json!({}));
    let Value::Object(definitions) = definitions else {
        return;
    };
    for document in documents(draft) {
        let Some(id) = document.get("$id").or_else(|| document.get("id")) else {
            continue;
        };
        let key = String::from(id.as_str().unwrap_or_default());
        definitions.entry(key).or_insert(document);
    }
}

fn documents(draft: Draft) -> Vec<Value> {
    match draft {
        Draft::Draft4 => vec![Value::clone(&meta::DRAFT4)],
        Draft::Draft6 => vec![Value::clone(&meta::DRAFT6)],
        Draft::Draft7 => vec![Value::clone(&meta::DRAFT7)],
        _ => {
            let parts = [
                &*meta::DRAFT202012,
                &*meta::DRAFT202012_CORE,
                &*meta::DRAFT202012_APPLICATOR,
                &*meta::DRAFT202012_UNEVALUATED,
                &*meta::DRAFT202012_VALIDATION,
                &*meta::DRAFT202012_META_DATA,
                &*meta::DRAFT202012_FORMAT_ANNOTATION,
                &*meta::DRAFT202012_CONTENT,
            ];
            parts.map(|part| fixed(Value::clone(part))).into()
        }
    }
}

/// The metaschema of 2020-12 can be extended by dynamic references; a copy that is entered at its root refers
/// to itself.
fn fixed(mut part: Value) -> Value {
    let mut open = vec![&mut part];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(map) => {
                if map.get("$dynamicRef").is_some_and(Value::is_string) {
                    *map = Map::from_iter([(String::from("$ref"), Value::from(DRAFT202012))]);
                    continue;
                }
                if map.get("$dynamicAnchor").is_some_and(Value::is_string) {
                    map.shift_remove("$dynamicAnchor");
                }
                open.extend(map.values_mut());
            }
            Value::Array(list) => open.extend(list),
            _ => {}
        }
    }
    part
}

/// Whether a `$ref` names the metaschema.
fn mentions(schema: &Value, uri: &str) -> bool {
    let mut open = vec![schema];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(map) => {
                let reference = map.get("$ref").and_then(Value::as_str);
                let rest = reference.and_then(|reference| reference.strip_prefix(uri));
                if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('#')) {
                    return true;
                }
                open.extend(map.values());
            }
            Value::Array(list) => open.extend(list),
            _ => {}
        }
    }
    false
}
