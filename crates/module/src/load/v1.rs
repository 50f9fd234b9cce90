//! Format v1: `MODULE.md` (front matter and instructions) and `schema.json` with `input` and `output`.

use serde_json::{Map, Value};

use super::load_context::FormatParts;
use super::{LoadContext, ManifestText, contract, examples};
use crate::diagnostic::{Diagnostic, Rule, Source};
use crate::document::split_front_matter;
use crate::format::Format;

pub(super) fn read(reading: &mut LoadContext<'_>) -> Option<FormatParts> {
    let front = front_matter(reading, "MODULE.md");
    reading.require("schema.json", "it contains the contract: `input` and `output`");
    let empty = Map::new();
    let source = front.as_ref().map_or(&empty, |(source, _)| source);
    let contract = contract::from_schema(reading, source);
    let (source, prompt) = front?;
    let tests = examples::listed_or_found(reading, &source);
    Some(FormatParts {
        format: Format::V1,
        source,
        prompt,
        contract,
        tests,
    })
}

/// The manifest and the text after it.
pub(super) fn front_matter(
    reading: &mut LoadContext<'_>,
    file: &'static str,
) -> Option<(Map<String, Value>, String)> {
    let text = reading.text(file)?;
    let Some(parts) = split_front_matter(text) else {
        let opened = text.trim_start().starts_with("---");
        let message = if opened {
            format!("the front matter of `{file}` is not closed")
        } else {
            format!("`{file}` does not begin with front matter")
        };
        let place = Source { file, text }.locate(0..3);
        let hint = "the first line is `---`, followed by the keys and another `---`";
        reading.push(Diagnostic::new(Rule::FRONT_MATTER, message).at(place).hint(hint));
        return None;
    };
    let yaml = text.get(parts.yaml.clone()).unwrap_or_default();
    reading.manifest = Some(ManifestText {
        file,
        text,
        yaml: parts.yaml.clone(),
    });
    reading.prompt = Some((file, parts.body.start));
    let source = reading.mapping(file, text, yaml)?;
    let body = text.get(parts.body).map(String::from).unwrap_or_default();
    Some((source, body))
}
