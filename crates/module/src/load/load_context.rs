//! A module while it is loaded: the files, the parsed parts, the origin of each part, and the diagnostics so
//! far. The checks work on this, so that a diagnostic can be located without an index of every line.

use std::ops::Range;

use serde_json::{Map, Value};

use super::{contract::ContractOrigin, v0, v1, v2};
use crate::diagnostic::{Diagnostic, Location, Report, Rule, Source};
use crate::document::{EntryPart, json_place, yaml_place};
use crate::file_map::FileMap;
use crate::format::Format;
use crate::module::{DerivedCache, Module};

/// The file that contains the manifest, and its YAML part.
#[derive(Clone, Debug)]
pub(crate) struct ManifestText<'a> {
    pub(crate) file: &'static str,
    pub(crate) text: &'a str,
    pub(crate) yaml: Range<usize>,
}

#[derive(Debug)]
pub(crate) struct LoadContext<'a> {
    pub(crate) files: &'a FileMap,
    pub(crate) report: Report,
    pub(crate) manifest: Option<ManifestText<'a>>,
    /// The source files of the parts of the contract's document.
    pub(crate) origins: Vec<ContractOrigin>,
    /// The file of the prompt and the offset of the prompt in it.
    pub(crate) prompt: Option<(&'static str, usize)>,
    pub(crate) module: Option<Module>,
}

/// The parts that depend on the format; the rest of a module is common to all formats.
pub(super) struct FormatParts {
    pub(super) format: Format,
    pub(super) source: Map<String, Value>,
    pub(super) prompt: String,
    pub(super) contract: crate::schema::Contract,
    pub(super) tests: Vec<crate::module::TestPair>,
}

impl<'a> LoadContext<'a> {
    pub(crate) fn of(files: &'a FileMap) -> Self {
        let mut reading = Self {
            files,
            report: Report::default(),
            manifest: None,
            origins: Vec::new(),
            prompt: None,
            module: None,
        };
        let parts = match Format::of_files(files) {
            None => {
                let message = "this folder contains no module.yaml, MODULE.md or module.md";
                let hint = "`cogn new NAME` creates a module";
                reading.push(Diagnostic::new(Rule::NOT_A_MODULE, message).hint(hint));
                None
            }
            Some(Format::V0) => v0::read(&mut reading),
            Some(Format::V1) => v1::read(&mut reading),
            Some(_) => v2::read(&mut reading),
        };
        reading.module = parts.map(|parts| {
            let manifest = crate::Manifest::read(&parts.source);
            Module {
                format: parts.format,
                context_schemas: super::context::schemas(files, &manifest.context),
                manifest,
                source: parts.source,
                prompt: parts.prompt,
                contract: parts.contract,
                tests: parts.tests,
                assets: super::assets::list(files),
                derived: DerivedCache::default(),
            }
        });
        reading
    }

    pub(crate) fn push(&mut self, diagnostic: Diagnostic) {
        self.report.push(diagnostic);
    }

    /// The location of a pointer in the manifest.
    pub(crate) fn in_manifest(&self, pointer: &str, part: EntryPart) -> Location {
        let Some(manifest) = &self.manifest else {
            return Location::file("module.yaml");
        };
        let source = Source {
            file: manifest.file,
            text: manifest.text,
        };
        let yaml = manifest.text.get(manifest.yaml.clone()).unwrap_or_default();
        let place = yaml_place(yaml, pointer, part);
        let start = manifest.yaml.start;
        source.locate(start + place.range.start..start + place.range.end)
    }

    /// The location of a pointer in a JSON file of the module.
    pub(crate) fn in_json(&self, file: &str, pointer: &str, part: EntryPart) -> Location {
        let Some(text) = self.files.text(file) else {
            return Location::file(file);
        };
        let text = text.trim_start_matches('\u{feff}');
        source(file, text, json_place(text, pointer, part).range)
    }

    /// The location of a pointer in the contract's document, which may be composed of several files.
    pub(crate) fn in_contract(&self, pointer: &str, part: EntryPart) -> Location {
        let (file, pointer) = self.origin_of(pointer);
        self.in_json(&file, &pointer, part)
    }

    /// The source file and pointer of a pointer into the contract's document.
    pub(crate) fn origin_of(&self, pointer: &str) -> (String, String) {
        for origin in &self.origins {
            if let Some(rest) = pointer.strip_prefix(&origin.prefix)
                && (rest.is_empty() || rest.starts_with('/'))
            {
                return (origin.file.clone(), String::from(rest));
            }
        }
        (String::from("schema.json"), String::from(pointer))
    }

    /// The location of a byte range in the prompt.
    pub(crate) fn in_prompt(&self, range: Range<usize>) -> Location {
        let Some((file, start)) = self.prompt else {
            return Location::file("prompt.md");
        };
        let text = self.files.text(file).unwrap_or_default();
        let text = text.trim_start_matches('\u{feff}');
        source(file, text, start + range.start..start + range.end)
    }
}

fn source(file: &str, text: &str, range: Range<usize>) -> Location {
    Source { file, text }.locate(range)
}
