//! The fixtures, and mutations of documents.

use std::fs;
use std::path::{Path, PathBuf};

use ir::Dialect;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Files of a dialect's folder with names that contain `part`, sorted.
pub(crate) fn fixture_paths(dialect: Dialect, part: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(dialect.as_str());
    let entries = fs::read_dir(folder).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.file_name().unwrap().to_string_lossy().contains(part));
    paths.sort();
    paths
}

/// Fixtures of a dialect with file names that end in `suffix`, by name.
pub(crate) fn fixtures(dialect: Dialect, suffix: &str) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for path in fixture_paths(dialect, suffix) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if let Some(stem) = name.strip_suffix(suffix) {
            let value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            found.push((String::from(stem), value));
        }
    }
    found
}

/// A mutation: the position (as a number), the kind, and a value.
pub(crate) type Disturbance = (usize, u8, Value);

pub(crate) fn disturbances() -> impl Strategy<Value = Vec<Disturbance>> {
    prop::collection::vec((any::<usize>(), 0_u8..4, anything()), 0..4)
}

fn anything() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        (-1e9..1e9).prop_map(|number: f64| Value::from(number)),
        "[a-z<|>$é]{0,6}".prop_map(Value::from),
        Just(json!([])),
        Just(json!({})),
        Just(json!([{"type": "text"}])),
        Just(json!({"type": "text", "text": "t"})),
    ]
}

/// Mutates a document at one position: adds a field, removes one, replaces a value, or adds an item.
pub(crate) fn disturb(document: &mut Value, (at, how, value): &Disturbance) {
    let pointers = pointers(document);
    let pointer = pointers[at % pointers.len()].clone();
    let Some(place) = document.pointer_mut(&pointer) else {
        return;
    };
    match (how, place) {
        (0, Value::Object(map)) => {
            map.insert(String::from("$zusatz"), value.clone());
        }
        (1, Value::Object(map)) => {
            let key = map.keys().nth(at % map.len().max(1)).cloned();
            if let Some(key) = key {
                map.shift_remove(&key);
            }
        }
        (0 | 1, Value::Array(list)) => list.push(value.clone()),
        (2, Value::Object(map)) => {
            map.insert(String::from("neu"), value.clone());
        }
        (_, place) if !pointer.is_empty() => *place = value.clone(),
        _ => {}
    }
}

/// Pointers to all values of a document.
pub(crate) fn pointers(document: &Value) -> Vec<String> {
    let mut all = Vec::new();
    collect(document, String::new(), &mut all);
    all
}

fn collect(value: &Value, pointer: String, out: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                let step = key.replace('~', "~0").replace('/', "~1");
                collect(inner, format!("{pointer}/{step}"), out);
            }
        }
        Value::Array(list) => {
            for (at, inner) in list.iter().enumerate() {
                collect(inner, format!("{pointer}/{at}"), out);
            }
        }
        _ => {}
    }
    out.push(pointer);
}

/// The number of cases of a property test: a bounded default, or the number from the environment. Rejected
/// inputs do not count as cases; a test that rejects nearly all of its inputs fails.
pub(crate) fn cases(usual: u32) -> ProptestConfig {
    let asked = ProptestConfig::default().cases;
    let cases = if asked > 256 { asked } else { usual };
    ProptestConfig {
        cases,
        max_global_rejects: 8 * cases,
        ..ProptestConfig::default()
    }
}
