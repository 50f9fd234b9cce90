//! Locations of the sections of a contract: file, path, and the `$ref`s to follow.

use serde_json::Value;

use super::MigrateError;
use super::draft::{Document, Draft, SCHEMA, text};
use super::edit::{self, Path, path};
use crate::file_map::normalise;

/// Limit of `$ref`s followed from a section to its object.
const REFERENCES_MAX: usize = 16;

/// The location of a section of the contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SectionLocation {
    pub(super) file: String,
    pub(super) at: Path,
}

/// The location of a section as declared in `io`, or the default.
pub(super) fn site(draft: &Draft, section: &str) -> Option<SectionLocation> {
    let usual = SectionLocation {
        file: String::from(SCHEMA),
        at: path(&[section]),
    };
    let Some(given) = draft.manifest.get(&["io", section]).and_then(Value::as_str) else {
        return Some(usual);
    };
    let (file, fragment) = given.split_once('#').unwrap_or((given, ""));
    let file = if file.is_empty() { SCHEMA } else { file };
    Some(SectionLocation {
        file: normalise(file)?,
        at: pointer(fragment),
    })
}

fn pointer(fragment: &str) -> Path {
    let unescape = |part: &str| part.replace("~1", "/").replace("~0", "~");
    fragment
        .split('/')
        .filter(|part| !part.is_empty())
        .map(unescape)
        .collect()
}

/// The schema object at a location, after following its `$ref`s.
pub(super) fn resolve(
    draft: &mut Draft,
    site: &SectionLocation,
) -> Result<Option<SectionLocation>, MigrateError> {
    let Some(document) = draft.schema(&site.file)? else {
        return Ok(None);
    };
    let mut at = site.at.clone();
    for _ in 0..REFERENCES_MAX {
        let Some(Value::Object(schema)) = edit::get(document.value(), &at) else {
            return Ok(None);
        };
        match schema.get("$ref").and_then(Value::as_str) {
            Some(reference) if reference.starts_with("#/") => at = pointer(reference.trim_start_matches('#')),
            _ => {
                let file = site.file.clone();
                return Ok(Some(SectionLocation { file, at }));
            }
        }
    }
    Ok(None)
}

pub(super) fn value<'a>(
    draft: &'a mut Draft,
    site: &SectionLocation,
) -> Result<Option<&'a Value>, MigrateError> {
    let document = draft.schema(&site.file)?;
    Ok(document.and_then(|document| edit::get(document.value(), &site.at)))
}

/// The data section, or the section under its old name `output` if `io` does not declare it.
pub(super) fn data_site(draft: &mut Draft) -> Result<Option<SectionLocation>, MigrateError> {
    let Some(mut site) = site(draft, "data") else {
        return Ok(None);
    };
    if value(draft, &site)?.is_none() && draft.manifest.get(&["io", "data"]).is_none() {
        site.at = path(&["output"]);
    }
    resolve(draft, &site)
}

/// Collects every local `$ref` with the path of the object that contains it.
pub(super) fn collect_references(value: &Value, at: &mut Path, found: &mut Vec<(Path, String)>) {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(map) => {
            if let Some(Value::String(target)) = map.get("$ref") {
                found.push((at.clone(), target.clone()));
            }
            map.iter().map(|(key, value)| (key.clone(), value)).collect()
        }
        Value::Array(list) => {
            let items = list.iter().enumerate();
            items.map(|(index, value)| (index.to_string(), value)).collect()
        }
        _ => return,
    };
    for (key, child) in children {
        at.push(key);
        collect_references(child, at, found);
        at.pop();
    }
}

/// The value of a schema file that will be merged into another.
pub(super) fn read(draft: &Draft, file: &str) -> Result<Value, MigrateError> {
    let document = Document::json(file, text(&draft.files, file)?)?;
    Ok(document.value().clone())
}
