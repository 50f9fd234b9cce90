//! Builds the contract of a module from its files. Most modules have one `schema.json`; if a section comes
//! from another file, that file is embedded in the document under a separate key and its local references are
//! rewritten.

use serde_json::{Map, Value};

use super::LoadContext;
use crate::diagnostic::{Diagnostic, Rule};
use crate::document::{EntryPart, join};
use crate::file_map;
use crate::manifest::OutputAlias;
use crate::schema::{Contract, Section};

/// Key of the contract's document that contains the schemas from other files.
const FILES_KEY: &str = "x-files";

/// A part of the contract's document and its source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ContractOrigin {
    pub(crate) prefix: String,
    pub(crate) file: String,
}

/// Combines `schema.json` and the `io` references of the manifest into one contract.
pub(super) fn from_schema(reading: &mut LoadContext<'_>, source: &Map<String, Value>) -> Contract {
    let mut document = match reading.json("schema.json") {
        Some(Value::Object(map)) => map,
        Some(_) => {
            let diagnostic =
                Diagnostic::new(Rule::INVALID_SCHEMA, "schema.json must be an object of sections");
            let diagnostic = diagnostic.at(reading.in_json("schema.json", "", EntryPart::Value));
            reading.push(diagnostic.hint("it contains `input`, `data`, `meta` and `error`"));
            Map::new()
        }
        None => Map::new(),
    };
    let alias = source
        .get("compat")
        .and_then(|compat| compat.get("schema_output_alias"))
        .is_some_and(|alias| alias == "output");
    let alias = if alias {
        OutputAlias::Output
    } else {
        OutputAlias::Data
    };
    let mut pointers = sections(&document, alias);
    let io = source.get("io").and_then(Value::as_object);
    for (section, keys) in IO_KEYS {
        let Some((key, reference)) = keys.iter().find_map(|key| Some((*key, io?.get(*key)?.as_str()?)))
        else {
            continue;
        };
        if let Some(pointer) = resolve(reading, &mut document, key, reference) {
            pointers.retain(|(known, _)| known != section);
            pointers.push((*section, pointer));
        }
    }
    Contract::new(Value::Object(document), pointers)
}

const IO_KEYS: &[(Section, &[&str])] = &[
    (Section::Input, &["input"]),
    (Section::Data, &["data", "output"]),
    (Section::Meta, &["meta"]),
    (Section::Error, &["error"]),
];

/// The named sections of the document. `output` is used as `data` if there is no `data`, or if the manifest
/// selects it.
pub(super) fn sections(document: &Map<String, Value>, alias: OutputAlias) -> Vec<(Section, String)> {
    let mut pointers = Vec::new();
    for section in Section::ALL {
        let name = match section {
            Section::Data if document.contains_key("output") => {
                let preferred = alias == OutputAlias::Output;
                if preferred || !document.contains_key("data") {
                    "output"
                } else {
                    "data"
                }
            }
            section => section.as_str(),
        };
        if document.contains_key(name) {
            pointers.push((section, format!("/{name}")));
        }
    }
    pointers
}

/// `./schema.json#/data` as a pointer into the document. Another file of the module is first embedded in the
/// document.
fn resolve(
    reading: &mut LoadContext<'_>,
    document: &mut Map<String, Value>,
    key: &str,
    reference: &str,
) -> Option<String> {
    let place = join("/io", key);
    let (path, fragment) = reference.split_once('#').unwrap_or((reference, ""));
    let fragment = percent_decoded(fragment);
    let refuse = |reading: &mut LoadContext<'_>, rule: Rule, message: String, hint: &str| {
        let location = reading.in_manifest(&place, EntryPart::Value);
        reading.push(Diagnostic::new(rule, message).at(location).hint(hint));
        None
    };
    let example = "write it as `./schema.json#/data`";
    if !(fragment.is_empty() || fragment.starts_with('/')) {
        let message = format!("`{reference}` is not a pointer into a file");
        return refuse(reading, Rule::BAD_POINTER, message, example);
    }
    let file = if path.is_empty() {
        Some(String::from("schema.json"))
    } else {
        file_map::normalise(path)
    };
    let Some(file) = file else {
        let message = format!("`{reference}` points outside the module's folder");
        return refuse(reading, Rule::PATH_ESCAPES, message, example);
    };
    let prefix = if file == "schema.json" {
        String::new()
    } else if reading.files.contains(&file) {
        embed(reading, document, &file)?
    } else {
        let message = format!("`{reference}` names a file that does not exist");
        return refuse(reading, Rule::BAD_POINTER, message, example);
    };
    let pointer = format!("{prefix}{fragment}");
    if pointer.is_empty() {
        let message = format!("`{reference}` refers to all of schema.json, not to a section");
        return refuse(reading, Rule::BAD_POINTER, message, example);
    }
    let found = document
        .get(first_token(&pointer).as_str())
        .and_then(|value| value.pointer(rest(&pointer)));
    match found {
        Some(_) => Some(pointer),
        None if document.is_empty() => None,
        None => {
            let message = format!("`{reference}` does not resolve");
            let names: Vec<String> = document
                .keys()
                .filter(|name| !name.starts_with('$') && *name != FILES_KEY)
                .map(|name| format!("`{name}`"))
                .collect();
            let hint = format!("schema.json contains {}", names.join(", "));
            refuse(reading, Rule::BAD_POINTER, message, &hint)
        }
    }
}

/// Embeds a schema file in the document and returns its pointer.
pub(super) fn embed(
    reading: &mut LoadContext<'_>,
    document: &mut Map<String, Value>,
    file: &str,
) -> Option<String> {
    let prefix = join(&format!("/{FILES_KEY}"), file);
    if reading.origins.iter().any(|origin| origin.prefix == prefix) {
        return Some(prefix);
    }
    let mut value = reading.json(file)?;
    rebase(&mut value, &prefix);
    let slot = document
        .entry(FILES_KEY)
        .or_insert_with(|| Value::Object(Map::new()));
    slot.as_object_mut()?.insert(String::from(file), value);
    reading.origins.push(ContractOrigin {
        prefix: prefix.clone(),
        file: String::from(file),
    });
    Some(prefix)
}

/// Adapts a separate schema document to its position under `prefix`: local references are rewritten, and its
/// own `$id` and `$schema` are removed.
pub(super) fn rebase(schema: &mut Value, prefix: &str) {
    if let Value::Object(map) = schema {
        map.shift_remove("$id");
        map.shift_remove("$schema");
    }
    rebase_references(schema, prefix);
}

fn rebase_references(schema: &mut Value, prefix: &str) {
    match schema {
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                match (key.as_str(), &mut *value) {
                    ("$ref", Value::String(reference)) => {
                        if let Some(fragment) = reference.strip_prefix('#')
                            && (fragment.is_empty() || fragment.starts_with('/'))
                        {
                            *reference = format!("#{prefix}{fragment}");
                        }
                    }
                    ("const" | "enum" | "default" | "examples", _) => {}
                    _ => rebase_references(value, prefix),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rebase_references(item, prefix)),
        _ => {}
    }
}

fn first_token(pointer: &str) -> String {
    crate::document::tokens(pointer).next().unwrap_or_default()
}

fn rest(pointer: &str) -> &str {
    let after = pointer.get(1..).unwrap_or_default();
    after.find('/').and_then(|at| after.get(at..)).unwrap_or_default()
}

/// Decodes `%24defs` to `$defs`: fragments of URIs may be percent-encoded.
pub(crate) fn percent_decoded(text: &str) -> String {
    if !text.contains('%') {
        return String::from(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let decoded = match (byte, tail) {
            (b'%', [high, low, ..]) => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                digit(*high).zip(digit(*low)).map(|(high, low)| high * 16 + low)
            }
            _ => None,
        };
        match decoded.and_then(|value| u8::try_from(value).ok()) {
            Some(value) => {
                bytes.push(value);
                rest = tail.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(byte);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
