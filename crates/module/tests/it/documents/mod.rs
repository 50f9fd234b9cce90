//! The two documents that define the language are fixtures; every example in them is extracted and checked
//! with the code for its kind. Each block has a row in a table; a block without a row and a row without a
//! block fail. Elisions (`...`) and lost indentation of YAML are restored only by the rules below.

mod formats;
mod specification;

use serde_json::Value;

/// Replaces the elisions `{ ... }` and `[...]` by empty values.
fn restore_elisions(text: &str) -> String {
    text.replace("{ ... }", "{}")
        .replace("{...}", "{}")
        .replace("[...]", "[]")
}

/// Removes `//` comment lines above JSON.
fn drop_comments(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// One or several concatenated JSON values.
fn json_values(text: &str) -> Vec<Value> {
    let text = restore_elisions(&drop_comments(text));
    serde_json::Deserializer::from_str(&text)
        .into_iter::<Value>()
        .collect::<Result<_, _>>()
        .unwrap_or_else(|error| panic!("not JSON: {error}\n{text}"))
}

fn json_value(text: &str) -> Value {
    let mut values = json_values(text);
    assert_eq!(values.len(), 1, "one value is expected in\n{text}");
    values.remove(0)
}

/// A JSON merge patch (RFC 7396), with which a fragment is completed.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(serde_json::Map::new());
    }
    let Value::Object(target) = target else { return };
    for (key, value) in patch {
        merge(target.entry(key.clone()).or_insert(Value::Null), value);
    }
}
