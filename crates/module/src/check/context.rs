//! Context rules: referenced schema files exist and are valid schemas.

use serde_json::Value;

use crate::diagnostic::{Diagnostic, Rule};
use crate::document::{EntryPart, join};
use crate::file_map;
use crate::load::LoadContext;

pub(super) fn check(reading: &mut LoadContext<'_>) {
    let Some(context) = reading
        .module
        .as_ref()
        .and_then(|module| module.source.get("context"))
        .cloned()
    else {
        return;
    };
    for list in ["accepts", "emits"] {
        for (index, entry) in context
            .get(list)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .enumerate()
        {
            if let Some(path) = entry.get("schema").and_then(Value::as_str) {
                let pointer = join(&join(&format!("/context/{list}"), &index.to_string()), "schema");
                schema_file(reading, &pointer, path);
            }
        }
    }
}

/// A reference such as `./schemas/history.json` or `./schema.json#/$defs/history`.
fn schema_file(reading: &mut LoadContext<'_>, pointer: &str, reference: &str) {
    let (path, fragment) = reference.split_once('#').unwrap_or((reference, ""));
    let Some(file) = file_map::normalise(path) else {
        let place = reading.in_manifest(pointer, EntryPart::Value);
        let message = format!("`{reference}` points outside the module's folder");
        reading.push(Diagnostic::new(Rule::PATH_ESCAPES, message).at(place));
        return;
    };
    let complain = |reading: &mut LoadContext<'_>, message: String| {
        let place = reading.in_manifest(pointer, EntryPart::Value);
        reading.push(Diagnostic::new(Rule::CONTEXT_SCHEMA, message).at(place));
    };
    if !reading.files.contains(&file) {
        complain(reading, format!("`{file}` does not exist"));
        return;
    }
    let Some(document) = reading.json(&file) else {
        return;
    };
    match document.pointer(fragment) {
        None => complain(reading, format!("`{reference}` does not resolve")),
        Some(schema) if !jsonschema::draft7::meta::is_valid(schema) => {
            complain(reading, format!("`{reference}` is not a valid JSON Schema"));
        }
        Some(_) => {}
    }
}
