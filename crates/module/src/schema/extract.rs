//! Extracts sections from their document as self-contained schemas: definitions are copied, and references
//! are moved with the section.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::contract::{Contract, Section};
use super::reference::local_pointer;
use crate::document::join;

/// Definitions that any section may refer to.
const SHARED: [&str; 2] = ["$defs", "definitions"];

/// Completes a schema that contains `section` at the pointer `to`.
pub(crate) fn extract(schema: &mut Value, contract: &Contract, section: Section, to: &str) {
    if let (Value::Object(schema), Value::Object(document)) = (&mut *schema, contract.document()) {
        for key in SHARED {
            if let Some(definitions) = document.get(key).filter(|_| !schema.contains_key(key)) {
                schema.insert(String::from(key), definitions.clone());
            }
        }
    }
    let usual = format!("/{}", section.as_str());
    let from = contract.pointer(section).unwrap_or(&usual);
    move_references(schema, &format!("#{from}"), to);
}

/// Removes definitions that no reference leads to.
pub(crate) fn remove_unused_definitions(schema: &mut Value) {
    let mut used: BTreeSet<String> = BTreeSet::new();
    let mut pending: Vec<&Value> = Vec::new();
    let own = schema.as_object().into_iter().flatten();
    pending.extend(
        own.filter(|(key, _)| !SHARED.contains(&key.as_str()))
            .map(|(_, value)| value),
    );
    // A reference at the root itself.
    let root = schema.get("$ref").and_then(Value::as_str);
    let mut references: Vec<String> = root.and_then(local_pointer).into_iter().collect();
    loop {
        while let Some(value) = pending.pop() {
            match value {
                Value::Object(map) => {
                    let reference = map.get("$ref").and_then(Value::as_str);
                    references.extend(reference.and_then(local_pointer));
                    pending.extend(map.values());
                }
                Value::Array(items) => pending.extend(items),
                _ => {}
            }
        }
        let Some(pointer) = references.pop() else { break };
        if used.insert(pointer.clone()) {
            pending.extend(schema.pointer(&pointer));
        }
    }
    let Value::Object(schema) = schema else { return };
    for key in SHARED {
        if let Some(Value::Object(definitions)) = schema.get_mut(key) {
            definitions.retain(|name, _| {
                let place = join(&join("", key), name);
                let leads = |pointer: &String| {
                    pointer
                        .strip_prefix(&place)
                        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
                };
                used.iter().any(leads)
            });
            if definitions.is_empty() {
                schema.shift_remove(key);
            }
        }
    }
}

/// Whether every reference resolves inside the schema.
pub(crate) fn stands_alone(schema: &Value) -> bool {
    leads_inside(schema, schema)
}

fn leads_inside(root: &Value, schema: &Value) -> bool {
    match schema {
        Value::Object(map) => {
            let reference = map.get("$ref").and_then(Value::as_str);
            let found = reference.is_none_or(|reference| {
                let pointer = reference.strip_prefix('#');
                pointer.is_some_and(|pointer| root.pointer(pointer).is_some())
            });
            found && map.values().all(|value| leads_inside(root, value))
        }
        Value::Array(items) => items.iter().all(|item| leads_inside(root, item)),
        _ => true,
    }
}

/// Moves references under the pointer `from` to the pointer `to`.
fn move_references(schema: &mut Value, from: &str, to: &str) {
    match schema {
        Value::Object(map) => {
            move_reference(map, from, to);
            for value in map.values_mut() {
                move_references(value, from, to);
            }
        }
        Value::Array(items) => {
            for item in items {
                move_references(item, from, to);
            }
        }
        _ => {}
    }
}

fn move_reference(map: &mut Map<String, Value>, from: &str, to: &str) {
    let Some(Value::String(reference)) = map.get_mut("$ref") else {
        return;
    };
    let Some(rest) = reference.strip_prefix(from) else {
        return;
    };
    if rest.is_empty() || rest.starts_with('/') {
        *reference = format!("{to}{rest}");
    }
}
