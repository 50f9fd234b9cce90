//! Format v0, six separate files: `module.md`, `input.schema.json`, `output.schema.json`, `constraints.yaml`,
//! `prompt.txt`, `examples/`.

use serde_json::{Map, Value, json};

use super::contract::{ContractOrigin, rebase};
use super::load_context::FormatParts;
use super::v1::front_matter;
use super::{LoadContext, ManifestText, examples};
use crate::document::split_front_matter;
use crate::format::Format;
use crate::schema::{Contract, Section};

pub(super) fn read(reading: &mut LoadContext<'_>) -> Option<FormatParts> {
    let source = manifest(reading);
    reading.require("prompt.txt", "it contains the instructions for the model");
    let prompt = reading.text("prompt.txt").map(String::from).unwrap_or_default();
    reading.prompt = Some(("prompt.txt", 0));
    let contract = contract(reading);
    let mut source = source?;
    if let Some(constraints) = constraints(reading)
        && !source.contains_key("constraints")
    {
        source.insert(String::from("constraints"), Value::Object(constraints));
    }
    let tests = examples::listed_or_found(reading, &source);
    Some(FormatParts {
        format: Format::V0,
        source,
        prompt,
        contract,
        tests,
    })
}

/// Front matter, or `name: value` lines in the text, as in the earliest modules.
fn manifest(reading: &mut LoadContext<'_>) -> Option<Map<String, Value>> {
    const FILE: &str = "module.md";
    let text = reading.text(FILE)?;
    if split_front_matter(text).is_some() || text.starts_with("---") {
        return front_matter(reading, FILE).map(|(source, _)| source);
    }
    reading.manifest = Some(ManifestText {
        file: FILE,
        text,
        yaml: 0..0,
    });
    let mut source = Map::new();
    for line in text.lines() {
        let line = line.trim_start_matches(['-', '*', ' ']);
        let Some((key, value)) = line.split_once(':') else {
            continue;
        };
        let key = key.trim_matches(['*', ' ', '`']).to_ascii_lowercase();
        let value = value.trim_matches(['*', ' ', '`', '"']);
        let known = ["name", "version", "responsibility"].contains(&key.as_str());
        if known && !value.is_empty() && !source.contains_key(&key) {
            source.insert(key, Value::from(value));
        }
    }
    if source.is_empty() {
        // Nothing was found; report the problems of the front matter form.
        front_matter(reading, FILE);
        return None;
    }
    Some(source)
}

/// Combines both schema files into one document with the current section names.
fn contract(reading: &mut LoadContext<'_>) -> Contract {
    let mut document = Map::new();
    let mut pointers = Vec::new();
    let files = [
        (Section::Input, "input.schema.json"),
        (Section::Data, "output.schema.json"),
    ];
    for (section, file) in files {
        reading.require(file, "v0 modules state their contract in two schema files");
        let Some(mut schema) = reading.json(file) else {
            continue;
        };
        let prefix = format!("/{}", section.as_str());
        rebase(&mut schema, &prefix);
        document.insert(String::from(section.as_str()), schema);
        reading.origins.push(ContractOrigin {
            prefix: prefix.clone(),
            file: String::from(file),
        });
        pointers.push((section, prefix));
    }
    Contract::new(Value::Object(document), pointers)
}

/// Converts `constraints.yaml` to the keys of v1. They are at the top level or one level below, in groups.
fn constraints(reading: &mut LoadContext<'_>) -> Option<Map<String, Value>> {
    const FILE: &str = "constraints.yaml";
    let text = reading.text(FILE)?;
    if text.trim().is_empty() {
        return None;
    }
    let written = reading.mapping(FILE, text, text)?;
    let is_set = |names: &[&str]| {
        let groups = written.values().filter_map(Value::as_object);
        std::iter::once(&written).chain(groups).any(|group| {
            names
                .iter()
                .any(|name| group.get(*name) == Some(&Value::Bool(true)))
        })
    };
    let mut constraints = Map::new();
    for (key, names) in [
        ("no_network", &["no_network", "no_external_network"][..]),
        ("require_confidence", &["require_confidence"]),
        ("require_rationale", &["require_rationale"]),
    ] {
        if is_set(names) {
            constraints.insert(String::from(key), json!(true));
        }
    }
    for (key, value) in written {
        constraints.entry(key).or_insert(value);
    }
    Some(constraints)
}
