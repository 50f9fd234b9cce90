//! Converts examples of the older formats to golden tests: an input and an output paired by their file names
//! move to `tests/` and are listed in the manifest. Other files are not moved.

use serde_json::{Value, json};

use super::MigrateError;
use super::draft::Draft;
use super::edit::{Edit, InsertAt, path};
use super::manifest::section;
use crate::file_map::{Entry, FileMap};
use crate::format::Format;

pub(super) fn migrate(draft: &mut Draft) -> Result<(), MigrateError> {
    if draft.from > Format::V1 {
        return Ok(());
    }
    for (input, output, name) in pairs(&draft.files) {
        let name = free_name(&draft.files, &name);
        let target_input = format!("tests/{name}.input.json");
        let target_expected = format!("tests/{name}.expected.json");
        let (Some(given), Some(expected)) = (draft.files.text(&input), draft.files.text(&output)) else {
            continue;
        };
        let (given, expected) = (String::from(given), envelope(expected));
        draft.files.remove(&input);
        draft.files.remove(&output);
        draft.change(&input, format!("moves to {target_input}"));
        draft.change(&output, format!("moves to {target_expected}"));
        draft
            .files
            .insert(target_input.clone(), Entry::Read(given.into_bytes()));
        draft
            .files
            .insert(target_expected.clone(), Entry::Read(expected.into_bytes()));
        list(draft, &format!("{target_input} -> {target_expected}"))?;
    }
    Ok(())
}

fn list(draft: &mut Draft, line: &str) -> Result<(), MigrateError> {
    if section(draft, "tests", json!([line]), InsertAt::Last, None)? {
        return Ok(());
    }
    if !draft.manifest.get(&["tests"]).is_some_and(Value::is_array) {
        return Ok(());
    }
    let push = Edit::Push {
        at: path(&["tests"]),
        value: json!(line),
    };
    draft.edit("lists a test", &push)
}

/// Input, output and a name for each pair under `examples/`.
fn pairs(files: &FileMap) -> Vec<(String, String, String)> {
    let mut pairs = Vec::new();
    for input in files.paths() {
        let Some(short) = input
            .strip_prefix("examples/")
            .filter(|path| path.ends_with(".json"))
        else {
            continue;
        };
        let Some(at) = short.rfind("input") else { continue };
        let (head, tail) = (
            short.get(..at).unwrap_or_default(),
            short.get(at + 5..).unwrap_or_default(),
        );
        let output = ["output", "expected"]
            .iter()
            .map(|word| format!("examples/{head}{word}{tail}"))
            .find(|path| files.bytes(path).is_some());
        if let Some(output) = output {
            let stem = format!("{head}{}", tail.strip_suffix(".json").unwrap_or(tail));
            let separators = ['.', '_', '-', '/'];
            let name: String = stem.trim_matches(separators).replace('/', "-");
            let name = if name.is_empty() {
                String::from("example")
            } else {
                name
            };
            pairs.push((String::from(input), output, name));
        }
    }
    pairs
}

fn free_name(files: &FileMap, name: &str) -> String {
    let taken = |name: &str| {
        files.contains(&format!("tests/{name}.input.json"))
            || files.contains(&format!("tests/{name}.expected.json"))
    };
    let mut free = String::from(name);
    let mut number = 2;
    while taken(&free) {
        free = format!("{name}-{number}");
        number += 1;
    }
    free
}

/// A bare result becomes the data of an envelope, with its text unchanged except for the indentation. An
/// envelope or a set of conditions is left unchanged.
fn envelope(text: &str) -> String {
    let Ok(Value::Object(map)) = serde_json::from_str::<Value>(text) else {
        return String::from(text);
    };
    let conditions = ["$validate", "_validate", "_contains", "$example"];
    if map.get("ok").is_some_and(Value::is_boolean) || conditions.iter().any(|key| map.contains_key(*key)) {
        return String::from(text);
    }
    let data = text.trim().replace('\n', "\n  ");
    format!("{{\n  \"ok\": true,\n  \"data\": {data}\n}}\n")
}
