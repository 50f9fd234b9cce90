//! The settings that a project's file may contain without being trusted: those that only select among the
//! back-ends of the user, or limit them. All others are removed, so a new setting is restricted until it is listed
//! here.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::config::layer::{Layer, Origin};

/// Sections without restricted settings.
const SECTIONS: &[&str] = &["timeouts", "routing", "aliases", "gate", "limits"];
const MEDIA: &[&str] = &["oversize", "normalise", "inline_accept_max"];
/// Settings of a back-end that the user has configured. `model` and `default_model` are missing: for the embedded
/// model they may name a file that native code then parses.
const BACKEND: &[&str] = &[
    "name",
    "weight",
    "priority",
    "region",
    "price",
    "limits",
    "timeouts",
    "operations",
    "features",
    "features_disabled",
];

/// Removes the restricted settings and returns their dotted names. `known` are the names of the back-ends that the
/// user has configured.
pub(crate) fn restrict(layer: &mut Layer, known: &[String]) -> Vec<String> {
    let mut removed = Vec::new();
    for (section, value) in std::mem::take(&mut layer.tree) {
        let kept = match (section.as_str(), value) {
            (name, value) if SECTIONS.contains(&name) => Some(value),
            ("media", Value::Object(table)) => keep_keys(table, MEDIA, "media", &mut removed),
            ("backends", Value::Array(items)) => {
                keep_backends(items, known, &mut layer.origins, &mut removed)
            }
            (_, value) => {
                name_all(&section, &value, &mut removed);
                None
            }
        };
        if let Some(value) = kept {
            layer.tree.insert(section, value);
        }
    }
    removed
}

/// The dotted names of the restricted settings of a file.
pub(crate) fn restricted_settings(layer: &Layer) -> Vec<String> {
    let backends = layer.tree.get("backends").and_then(Value::as_array);
    let names = backends
        .into_iter()
        .flatten()
        .filter_map(|item| item["name"].as_str());
    let names: Vec<_> = names.map(String::from).collect();
    restrict(&mut layer.clone(), &names)
}

fn keep_keys(
    table: Map<String, Value>,
    keys: &[&str],
    path: &str,
    removed: &mut Vec<String>,
) -> Option<Value> {
    let mut kept = Map::new();
    for (key, value) in table {
        if keys.contains(&key.as_str()) {
            kept.insert(key, value);
        } else {
            removed.push(format!("{path}.{key}"));
        }
    }
    (!kept.is_empty()).then_some(Value::Object(kept))
}

/// Keeps the allowed settings of known back-ends. The list gets shorter, so the origins of its items move.
fn keep_backends(
    items: Vec<Value>,
    known: &[String],
    origins: &mut BTreeMap<String, Origin>,
    removed: &mut Vec<String>,
) -> Option<Value> {
    let mut kept = Vec::new();
    let mut moved = BTreeMap::new();
    for (index, item) in items.into_iter().enumerate() {
        let name = item["name"].as_str().map_or_else(String::new, String::from);
        let Value::Object(table) = item else { continue };
        let path = format!("backends.{name}");
        if !known.contains(&name) {
            removed.push(path);
            continue;
        }
        let (from, to) = (format!("/backends/{index}"), format!("/backends/{}", kept.len()));
        kept.extend(keep_keys(table, BACKEND, &path, removed));
        let inside = origins.iter().filter_map(|(pointer, origin)| {
            let rest = pointer.strip_prefix(&from)?;
            (rest.is_empty() || rest.starts_with('/')).then(|| (format!("{to}{rest}"), origin.clone()))
        });
        moved.extend(inside.collect::<Vec<_>>());
    }
    origins.retain(|pointer, _| !pointer.starts_with("/backends/"));
    origins.append(&mut moved);
    (!kept.is_empty()).then_some(Value::Array(kept))
}

/// Names the settings of a section that is removed whole.
fn name_all(section: &str, value: &Value, removed: &mut Vec<String>) {
    let names: Vec<_> = match value {
        Value::Object(table) => table.keys().map(String::as_str).collect(),
        Value::Array(items) => items.iter().filter_map(|item| item["name"].as_str()).collect(),
        _ => Vec::new(),
    };
    if names.is_empty() {
        removed.push(String::from(section));
    }
    removed.extend(names.iter().map(|name| format!("{section}.{name}")));
}
