//! The rule dialect: `_validate` with thresholds and words, `_contains` with values at paths.

use serde_json::{Map, Value};

use super::Mismatch;
use super::path::values;
use super::subset::same;

pub(super) fn check_rules(map: &Map<String, Value>, envelope: &Value, found: &mut Vec<Mismatch>) {
    let rules = map.get("_validate").and_then(Value::as_object);
    for (rule, wanted) in rules.into_iter().flatten() {
        match rule.as_str() {
            "required" => required(wanted, envelope, found),
            "confidence_min" => threshold(wanted, envelope, "at least", |have, limit| have >= limit, found),
            "confidence_max" => threshold(wanted, envelope, "at most", |have, limit| have <= limit, found),
            "rationale_min_length" => rationale(wanted, envelope, found),
            "contains" => words(wanted, envelope, true, found),
            "not_contains" => words(wanted, envelope, false, found),
            other => found.push(Mismatch::new(
                "",
                format!("`_validate.{other}` is not a known rule"),
            )),
        }
    }
    let contained = map.get("_contains").and_then(Value::as_object);
    for (path, wanted) in contained.into_iter().flatten() {
        holds(path, wanted, envelope, found);
    }
}

fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn required(wanted: &Value, envelope: &Value, found: &mut Vec<Mismatch>) {
    for path in texts(wanted) {
        match values(envelope, path) {
            Ok(values) if !values.is_empty() => {}
            Ok(_) => found.push(Mismatch::new("", format!("`{path}` is required but missing"))),
            Err(error) => found.push(Mismatch::new("", error)),
        }
    }
}

fn threshold(
    wanted: &Value,
    envelope: &Value,
    word: &str,
    holds: fn(f64, f64) -> bool,
    found: &mut Vec<Mismatch>,
) {
    let (pointer, have) = ("/meta/confidence", envelope.pointer("/meta/confidence"));
    let ok = match (have.and_then(Value::as_f64), wanted.as_f64()) {
        (Some(have), Some(limit)) => holds(have, limit),
        _ => false,
    };
    if !ok {
        let message = format!("the confidence must be {word} {wanted}");
        found.push(Mismatch::new(pointer, message).values(Some(wanted), have));
    }
}

fn rationale(wanted: &Value, envelope: &Value, found: &mut Vec<Mismatch>) {
    let pointer = "/data/rationale";
    let have = envelope.pointer(pointer).and_then(Value::as_str);
    let length = have.map_or(0, |text| text.chars().count()) as u64;
    if wanted.as_u64().is_none_or(|least| length < least) {
        let message = format!("the rationale has {length} characters, fewer than {wanted}");
        found.push(Mismatch::new(pointer, message));
    }
}

/// Checks one or more words in all strings of the data, or per path in the strings at that path.
fn words(wanted: &Value, envelope: &Value, should: bool, found: &mut Vec<Mismatch>) {
    let look = |word: &str, place: &str, text: &str, pointer: &str| {
        let verb = if should { "does not contain" } else { "contains" };
        let wrong = text.contains(word) != should;
        wrong.then(|| Mismatch::new(pointer, format!("{place} {verb} `{word}`")))
    };
    if let Value::Object(paths) = wanted {
        for (path, wanted) in paths {
            match values(envelope, path) {
                Ok(values) => {
                    let text: Vec<String> = values.iter().map(|(_, value)| gathered(value)).collect();
                    let pointer = values.first().map_or("", |(pointer, _)| pointer);
                    for word in texts(wanted) {
                        found.extend(look(word, &format!("`{path}`"), &text.join("\n"), pointer));
                    }
                }
                Err(error) => found.push(Mismatch::new("", error)),
            }
        }
        return;
    }
    let data = envelope.get("data").or_else(|| envelope.get("partial_data"));
    let text = data.map(gathered).unwrap_or_default();
    for word in texts(wanted) {
        found.extend(look(word, "the answer", &text, "/data"));
    }
}

/// All strings in a value, one per line; numbers are included as text.
fn gathered(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(gathered).collect::<Vec<_>>().join("\n"),
        Value::Object(map) => map.values().map(gathered).collect::<Vec<_>>().join("\n"),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Checks that each wanted value is among the values at the path.
fn holds(path: &str, wanted: &Value, envelope: &Value, found: &mut Vec<Mismatch>) {
    let there = match values(envelope, path) {
        Ok(there) => there,
        Err(error) => return found.push(Mismatch::new("", error)),
    };
    let there: Vec<&Value> = there.into_iter().map(|(_, value)| value).collect();
    // If the path leads to a list, its items are compared.
    let items: Vec<&Value> = there
        .iter()
        .flat_map(|value| match value {
            Value::Array(items) => items.iter().collect(),
            other => vec![*other],
        })
        .collect();
    let single = std::slice::from_ref(wanted);
    for value in wanted.as_array().map_or(single, Vec::as_slice) {
        if !items.iter().any(|item| same(value, item)) {
            let message = format!("`{path}` does not contain {value}");
            let actual = Value::Array(items.iter().map(|item| (*item).clone()).collect());
            found.push(Mismatch::new("/data", message).values(Some(value), Some(&actual)));
        }
    }
}
