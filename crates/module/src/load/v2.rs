//! `module.yaml`, `prompt.md`, `schema.json`.

use serde_json::Value;

use crate::diagnostic::{Diagnostic, Location, Report, Rule};
use crate::document::parse_yaml;
use crate::files::FileMap;
use crate::format::Format;
use crate::manifest::Manifest;
use crate::module::Module;
use crate::schema::{Contract, Section};

pub(super) fn load(files: &FileMap, report: &mut Report) -> Option<Module> {
    let file = if files.contains("module.yaml") {
        "module.yaml"
    } else {
        "module.yml"
    };
    let text = files.text(file)?;
    let source = match parse_yaml(text) {
        Ok(Value::Object(map)) => map,
        Ok(_) => {
            let diagnostic = Diagnostic::new(Rule::NOT_A_MAPPING, "the manifest is not a mapping");
            report.push(diagnostic.at(Location::file(file)));
            return None;
        }
        Err(error) => {
            report.push(Diagnostic::new(Rule::YAML_SYNTAX, error.message).at(Location::file(file)));
            return None;
        }
    };
    let schema = files
        .bytes("schema.json")
        .and_then(|bytes| serde_json::from_slice::<Value>(bytes).ok());
    let document = schema.unwrap_or_default();
    let pointers = Section::ALL.into_iter().filter_map(|section| {
        let pointer = format!("/{}", section.as_str());
        document.pointer(&pointer).is_some().then_some((section, pointer))
    });
    let contract = Contract::new(document.clone(), pointers.collect::<Vec<_>>());
    Some(Module {
        format: Format::of_manifest(&source),
        manifest: Manifest::read(&source),
        source,
        prompt: files.text("prompt.md").map(String::from).unwrap_or_default(),
        contract,
        tests: Vec::new(),
        assets: Vec::new(),
    })
}
