//! Narrows a schema for a small model, never widens it: every value that matches the result matches the
//! original. Three things are narrowed: an object that lists its properties gets no others, a condition on
//! a boolean (`if` .. `then` .. `else`) becomes a choice of two schemas, and a number without bounds gets
//! bounds, because a small model may otherwise write digits without end.

use serde_json::{Map, Value, json};

use crate::limits;

/// The narrowed schema, or `None` if it is nested too deeply.
pub(crate) fn narrow(schema: &Value) -> Option<Value> {
    let mut narrowed = schema.clone();
    // Parts of an `allOf` describe one object together: closing one would forbid properties that others
    // require.
    let rules = Rules {
        closing: !mentions(schema, "allOf", 0)?,
        // A choice moves its properties, and pointers to them would not resolve.
        splitting: !points_into_properties(schema),
    };
    walk(&mut narrowed, rules, 0)?;
    Some(narrowed)
}

/// Which kinds of narrowing apply to this document.
#[derive(Clone, Copy)]
struct Rules {
    closing: bool,
    splitting: bool,
}

fn points_into_properties(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => {
            let shared =
                |target: &str| target.starts_with("#/definitions/") || target.starts_with("#/$defs/");
            let elsewhere = map
                .get("$ref")
                .and_then(Value::as_str)
                .is_some_and(|to| !shared(to));
            elsewhere || map.values().any(points_into_properties)
        }
        Value::Array(items) => items.iter().any(points_into_properties),
        _ => false,
    }
}

fn mentions(value: &Value, key: &str, depth: usize) -> Option<bool> {
    if depth > limits::SCHEMA_DEPTH_MAX {
        return None;
    }
    let mut found = false;
    match value {
        Value::Object(map) => {
            found |= map.contains_key(key);
            for value in map.values() {
                found |= mentions(value, key, depth + 1)?;
            }
        }
        Value::Array(items) => {
            for item in items {
                found |= mentions(item, key, depth + 1)?;
            }
        }
        _ => {}
    }
    Some(found)
}

fn walk(schema: &mut Value, rules: Rules, depth: usize) -> Option<()> {
    if depth > limits::SCHEMA_DEPTH_MAX {
        return None;
    }
    let Value::Object(map) = schema else {
        return Some(());
    };
    for key in ["properties", "definitions", "$defs", "patternProperties"] {
        if let Some(Value::Object(members)) = map.get_mut(key) {
            for member in members.values_mut() {
                walk(member, rules, depth + 1)?;
            }
        }
    }
    for key in ["items", "additionalProperties", "additionalItems"] {
        if let Some(member) = map.get_mut(key) {
            walk(member, rules, depth + 1)?;
        }
    }
    for key in ["anyOf", "oneOf", "prefixItems", "items"] {
        if let Some(Value::Array(members)) = map.get_mut(key) {
            for member in members {
                walk(member, rules, depth + 1)?;
            }
        }
    }
    bound_numbers(map);
    if rules.closing && lists_all_properties(map) {
        map.insert(String::from("additionalProperties"), Value::Bool(false));
    }
    if rules.splitting
        && let Some(choice) = choice(map)
    {
        *schema = choice;
    }
    Some(())
}

/// Far beyond practical counts, and exact in every JSON parser.
const NUMBER_MAX: i64 = 1_000_000_000_000_000;

fn bound_numbers(map: &mut Map<String, Value>) {
    let numeric = matches!(
        map.get("type").and_then(Value::as_str),
        Some("integer" | "number")
    );
    if !numeric || map.contains_key("enum") || map.contains_key("const") {
        return;
    }
    let bound = |map: &Map<String, Value>, names: [&str; 2]| {
        let bounds = names.iter().filter_map(|name| map.get(*name));
        bounds.filter_map(Value::as_f64).next()
    };
    let low = bound(map, ["minimum", "exclusiveMinimum"]);
    let high = bound(map, ["maximum", "exclusiveMaximum"]);
    #[expect(clippy::cast_precision_loss, reason = "exact at this size")]
    let far = NUMBER_MAX as f64;
    if high.is_none() && low.is_none_or(|low| low < far) {
        map.insert(String::from("maximum"), Value::from(NUMBER_MAX));
    }
    if low.is_none() && high.is_none_or(|high| high > -far) {
        map.insert(String::from("minimum"), Value::from(-NUMBER_MAX));
    }
}

/// Whether no keyword other than `properties` defines the properties of this object.
fn lists_all_properties(map: &Map<String, Value>) -> bool {
    let others = [
        "additionalProperties",
        "patternProperties",
        "propertyNames",
        "minProperties",
        "anyOf",
        "oneOf",
        "$ref",
        "not",
        "dependencies",
    ];
    map.contains_key("properties") && !others.iter().any(|key| map.contains_key(*key))
}

/// `if k is b then .. else ..` for a required boolean `k`, as a choice of two schemas.
fn choice(map: &Map<String, Value>) -> Option<Value> {
    let condition = map.get("if")?.as_object()?;
    let members = condition.get("properties")?.as_object()?;
    let (key, wanted) = members.iter().next().filter(|_| members.len() == 1)?;
    let plain = condition
        .keys()
        .all(|word| word == "properties" || word == "required");
    let wanted = wanted.as_object().filter(|wanted| wanted.len() == 1)?;
    let wanted = wanted.get("const")?.as_bool()?;
    let boolean = map.get("properties")?.get(key)?.get("type") == Some(&json!("boolean"));
    let required = strings(map.get("required")).any(|name| name == key);
    if !plain || !boolean || !required {
        return None;
    }
    let branch = |word: &str, value: bool| {
        let mut branch = map.clone();
        for word in ["if", "then", "else", "definitions", "$defs"] {
            branch.remove(word);
        }
        if let Some(Value::Object(properties)) = branch.get_mut("properties") {
            properties.insert(key.clone(), json!({"const": value}));
        }
        match map.get(word) {
            None => Some(Value::Object(branch)),
            Some(more) => merged(branch, more.as_object()?),
        }
    };
    let mut choice = json!({"anyOf": [branch("then", wanted)?, branch("else", !wanted)?]});
    for word in ["definitions", "$defs"] {
        if let (Value::Object(choice), Some(shared)) = (&mut choice, map.get(word)) {
            choice.insert(String::from(word), shared.clone());
        }
    }
    Some(choice)
}

/// Merges both, if `more` only requires or forbids properties.
fn merged(mut branch: Map<String, Value>, more: &Map<String, Value>) -> Option<Value> {
    for (word, value) in more {
        match word.as_str() {
            "required" => {
                let known = strings(branch.get("required")).collect::<Vec<_>>();
                let new = strings(Some(value)).filter(|name| !known.contains(name));
                let all = known.iter().copied().chain(new);
                let all = all.map(Value::from).collect::<Vec<_>>();
                branch.insert(String::from("required"), Value::Array(all));
            }
            "properties" => {
                for (name, value) in value.as_object()? {
                    if *value != Value::Bool(false) || strings(branch.get("required")).any(|one| one == name)
                    {
                        return None;
                    }
                    let closed = branch.get("additionalProperties") == Some(&Value::Bool(false));
                    let properties = branch.get_mut("properties")?.as_object_mut()?;
                    match closed {
                        true => properties.shift_remove(name),
                        false => properties.insert(name.clone(), Value::Bool(false)),
                    };
                }
            }
            _ => return None,
        }
    }
    Some(Value::Object(branch))
}

fn strings(list: Option<&Value>) -> impl Iterator<Item = &str> {
    list.and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}
