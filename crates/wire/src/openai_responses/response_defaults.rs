//! Fields that the vendor's clients require and responses of other vendors lack: ids and states of items, and
//! empty lists. Only for responses that this gateway encodes; a response received in this dialect is returned
//! unchanged.

use serde_json::{Map, Value, json};

/// Adds the missing fields to a unary response.
pub fn complete(response: &mut Value) {
    let items = response.get_mut("output").and_then(Value::as_array_mut);
    for (at, item) in items.into_iter().flatten().enumerate() {
        complete_item(item, at);
    }
}

pub(super) fn complete_item(item: &mut Value, at: usize) {
    let Some(map) = item.as_object_mut() else { return };
    match map.get("type").and_then(Value::as_str) {
        Some("message") => {
            let parts = map.get_mut("content").and_then(Value::as_array_mut);
            parts.into_iter().flatten().for_each(complete_part);
        }
        Some("function_call") => {
            put(map, "id", json!(format!("fc_{at}")));
            put(map, "status", json!("completed"));
        }
        _ => {}
    }
}

pub(super) fn complete_part(part: &mut Value) {
    if let Some(map) = part.as_object_mut()
        && map.get("type").and_then(Value::as_str) == Some("output_text")
    {
        put(map, "annotations", json!([]));
        put(map, "logprobs", json!([]));
    }
}

fn put(map: &mut Map<String, Value>, key: &str, value: Value) {
    map.entry(key).or_insert(value);
}
