//! Format v2: `module.yaml`, `prompt.md`, `schema.json`.

use serde_json::Map;

use super::load_context::FormatParts;
use super::{LoadContext, ManifestText, contract, examples};
use crate::diagnostic::{Diagnostic, Location, Rule};
use crate::format::Format;

pub(super) fn read(reading: &mut LoadContext<'_>) -> Option<FormatParts> {
    let file = if reading.files.contains("module.yaml") {
        "module.yaml"
    } else {
        "module.yml"
    };
    let text = reading.text(file);
    let source = text.and_then(|text| {
        reading.manifest = Some(ManifestText {
            file,
            text,
            yaml: 0..text.len(),
        });
        reading.mapping(file, text, text)
    });
    let prompt = reading.text("prompt.md").map(String::from);
    reading.prompt = Some(("prompt.md", 0));
    reading.require("prompt.md", "it contains the instructions for the model");
    reading.require(
        "schema.json",
        "it contains the contract: `input`, `data`, `meta`, `error`",
    );
    let empty = Map::new();
    let contract = contract::from_schema(reading, source.as_ref().unwrap_or(&empty));
    let source = source?;
    let tests = examples::listed_or_found(reading, &source);
    Some(FormatParts {
        format: Format::of_manifest(&source),
        source,
        prompt: prompt.unwrap_or_default(),
        contract,
        tests,
    })
}

impl LoadContext<'_> {
    /// Reports a file that the format requires if it is missing.
    pub(super) fn require(&mut self, file: &str, why: &str) {
        if !self.files.contains(file) {
            let diagnostic = Diagnostic::new(Rule::MISSING_FILE, format!("`{file}` is missing"));
            self.push(diagnostic.at(Location::file(file)).hint(why));
        }
    }
}
