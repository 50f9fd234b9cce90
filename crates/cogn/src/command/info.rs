//! `cogn info MODULE`: the properties of a module, defaults included.

use anyhow::Result;
use clap::Args;
use module::schema::{Section, resolve};
use module::{Module, Strict, check};
use owo_colors::OwoColorize;
use serde_json::{Map, Value, json};

use crate::exit::Exit;
use crate::modules::{Found, Search, read_folder};
use crate::output::{Output, hinted};

#[derive(Debug, Args)]
pub(crate) struct Info {
    /// The module: a name or a folder.
    #[arg(value_name = "MODULE")]
    name: String,
}

impl Info {
    pub(crate) fn run(&self, search: &Search, output: &Output) -> Result<Exit> {
        let found = search.find(&self.name)?;
        let files = read_folder(&found.path)?;
        let loaded = check(&files, Strict::Standard);
        let Some(module) = loaded.module else {
            let hint = format!("`cogn validate {}` shows the problems", self.name);
            return Err(hinted(
                format!("{} cannot be loaded as a module", found.path.display()),
                hint,
            ));
        };
        let facts = facts(&found, &module, loaded.report.errors());
        if output.json {
            output.json(&facts)?;
        } else {
            let mut text = String::new();
            show(&mut text, &facts, 0);
            output.line(text.trim_end())?;
        }
        Ok(Exit::Success)
    }
}

fn facts(found: &Found, module: &Module, errors: usize) -> Value {
    let mut facts = Map::new();
    facts.insert(String::from("path"), json!(found.path));
    facts.insert(String::from("format"), json!(module.format.as_str()));
    facts.insert(String::from("errors"), json!(errors));
    if let Value::Object(manifest) = json!(module.manifest) {
        facts.extend(manifest);
    }
    facts.insert(String::from("schema"), schema(module));
    let tests = module.tests.iter();
    let tests: Vec<Value> = tests
        .map(|test| json!({"name": test.name, "input": test.input, "expected": test.expected}))
        .collect();
    facts.insert(String::from("tests"), Value::Array(tests));
    let assets = module.assets.iter();
    let assets: Vec<Value> = assets
        .map(|asset| json!({"path": asset.path, "size_bytes": asset.size_bytes}))
        .collect();
    facts.insert(String::from("assets"), Value::Array(assets));
    facts.insert(
        String::from("prompt_characters"),
        json!(module.prompt.chars().count()),
    );
    Value::Object(facts)
}

/// Each section with its fields and which of them are required.
fn schema(module: &Module) -> Value {
    let contract = &module.contract;
    let mut sections = Map::new();
    for section in Section::ALL {
        let Some(schema) = contract.schema(section) else {
            continue;
        };
        let schema = resolve(contract.document(), schema);
        let fields: Vec<&String> = schema
            .get("properties")
            .and_then(Value::as_object)
            .map(|properties| properties.keys().collect())
            .unwrap_or_default();
        let facts = json!({
            "at": contract.pointer(section),
            "required": schema.get("required").cloned().unwrap_or_else(|| json!([])),
            "fields": fields,
        });
        sections.insert(String::from(section.as_str()), facts);
    }
    Value::Object(sections)
}

/// Prints properties as indented lines; empty values are omitted.
fn show(text: &mut String, facts: &Value, depth: usize) {
    let Value::Object(map) = facts else { return };
    for (key, value) in map {
        let indent = "  ".repeat(depth);
        match value {
            Value::Null => {}
            Value::Object(inner) if inner.is_empty() => {}
            Value::Array(items) if items.is_empty() => {}
            Value::Object(_) => {
                text.push_str(&format!("{indent}{}:\n", key.bold()));
                show(text, value, depth + 1);
            }
            Value::Array(items) if items.iter().any(Value::is_object) => {
                text.push_str(&format!("{indent}{}:\n", key.bold()));
                for item in items {
                    text.push_str(&format!("{indent}  - {}\n", plain_map(item)));
                }
            }
            value => text.push_str(&format!("{indent}{}: {}\n", key.bold(), plain(value))),
        }
    }
}

fn plain_map(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let shown = map.iter().filter(|(_, value)| !value.is_null());
            let parts: Vec<String> = shown
                .map(|(key, value)| format!("{key}: {}", plain(value)))
                .collect();
            parts.join(", ")
        }
        value => plain(value),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        value => value.to_string(),
    }
}
