//! The module during a migration: its documents as value and text, its files, and the list of changes.
//! Every edit is made through this type, so that each is reported and is covered by the verification that
//! text and value agree.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::edit::{self, Edit, Path};
use super::text::{Text, line_at};
use super::{Change, Decision, DecisionLevel, MigrateError, example, json, legacy, yaml};
use crate::document::parse_yaml;
use crate::file_map::{Entry, FileMap};
use crate::format::Format;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Language {
    Yaml,
    Json,
}

/// A text and its parsed value, edited together.
#[derive(Clone, Debug)]
pub(super) struct Document {
    file: String,
    language: Language,
    original: Text,
    text: String,
    value: Value,
    edited: bool,
}

#[derive(Debug)]
pub(super) struct Draft {
    pub(super) from: Format,
    pub(super) to: Format,
    /// Everything but the documents below, which are written back at the end.
    pub(super) files: FileMap,
    pub(super) manifest: Document,
    schemas: BTreeMap<String, Document>,
    changes: Vec<Change>,
    decisions: Vec<(Decision, Path)>,
    /// An overflow section was added, because the module had none.
    pub(super) overflow_added: bool,
}

pub(super) const SCHEMA: &str = "schema.json";
pub(super) const PROMPT: &str = "prompt.md";

impl Draft {
    /// Reads the module; older formats are first converted to `module.yaml`, `schema.json` and
    /// `prompt.md`, with their keys unchanged.
    pub(super) fn open(files: &FileMap, to: Format) -> Result<Self, MigrateError> {
        let family = Format::of_files(files).ok_or_else(|| MigrateError {
            file: String::from("."),
            line: 0,
            message: String::from("no module.yaml, MODULE.md or module.md found"),
            hint: String::from("pass the folder of a module"),
        })?;
        if family < Format::V2_0 {
            return legacy::open(files, family, to);
        }
        let file = if files.contains("module.yaml") {
            "module.yaml"
        } else {
            "module.yml"
        };
        let manifest = Document::yaml(file, text(files, file)?)?;
        let from = Format::of_manifest(manifest.map());
        Ok(Self::new(from, to, files.clone(), manifest))
    }

    pub(super) fn new(from: Format, to: Format, files: FileMap, manifest: Document) -> Self {
        Self {
            from,
            to,
            files,
            manifest,
            schemas: BTreeMap::new(),
            changes: Vec::new(),
            decisions: Vec::new(),
            overflow_added: false,
        }
    }

    /// The module is older than v2.2 and gets all sections of v2.2, not only the required ones.
    pub(super) fn is_before_v22(&self) -> bool {
        self.from < Format::V2_2
    }

    /// The module is migrated from an older format to v2.5.
    pub(super) fn becomes_v25(&self) -> bool {
        self.to == Format::V2_5 && self.from < Format::V2_5
    }

    pub(super) fn change(&mut self, file: &str, what: impl Into<String>) {
        self.changes.push(Change {
            file: String::from(file),
            what: what.into(),
        });
    }

    /// Records a decision for the author; `at` is a path in the document of that file, if it is one.
    pub(super) fn decide(&mut self, weight: DecisionLevel, file: &str, at: &[&str], what: impl Into<String>) {
        let decision = Decision {
            file: String::from(file),
            line: 0,
            weight,
            what: what.into(),
        };
        self.decisions.push((decision, edit::path(at)));
    }

    /// Edits the manifest.
    pub(super) fn edit(&mut self, what: impl Into<String>, edit: &Edit) -> Result<(), MigrateError> {
        self.manifest.edit(edit)?;
        let file = self.manifest.file.clone();
        self.change(&file, what);
        Ok(())
    }

    /// Edits the manifest as part of a change that is already reported.
    pub(super) fn manifest_edit(&mut self, edit: &Edit) -> Result<(), MigrateError> {
        self.manifest.edit(edit)
    }

    /// The JSON document of a file, parsed on first use; `None` if there is no such file.
    pub(super) fn schema(&mut self, file: &str) -> Result<Option<&mut Document>, MigrateError> {
        if !self.schemas.contains_key(file) {
            if !self.files.contains(file) {
                return Ok(None);
            }
            let document = Document::json(file, text(&self.files, file)?)?;
            self.schemas.insert(String::from(file), document);
        }
        Ok(self.schemas.get_mut(file))
    }

    /// Edits a JSON document.
    pub(super) fn edit_schema(
        &mut self,
        file: &str,
        what: impl Into<String>,
        edit: &Edit,
    ) -> Result<(), MigrateError> {
        let Some(document) = self.schema(file)? else {
            return Ok(());
        };
        document.edit(edit)?;
        self.change(file, what);
        Ok(())
    }

    /// A file that did not exist.
    pub(super) fn create(&mut self, file: &str, contents: &str, what: impl Into<String>) {
        self.files.insert(file, Entry::Read(contents.as_bytes().to_vec()));
        self.change(file, what);
    }

    /// Reports files of an older format that remain beside the new manifest.
    pub(super) fn report_unmigrated(&mut self) {
        if self.changes.is_empty() {
            return;
        }
        for file in ["MODULE.md", "module.md"] {
            if self.files.contains(file) {
                let what = "is ignored, since module.yaml exists: delete it";
                self.decide(DecisionLevel::Review, file, &[], what);
            }
        }
    }

    /// Verifies the edits and writes the documents back.
    pub(super) fn close(
        mut self,
        before: &FileMap,
    ) -> Result<(FileMap, Vec<Change>, Vec<Decision>), MigrateError> {
        let mut documents = vec![&self.manifest];
        documents.extend(self.schemas.values());
        for document in documents.iter().filter(|document| document.edited) {
            document.verify()?;
            self.files
                .insert(document.file.clone(), Entry::Read(document.whole().into_bytes()));
        }
        let lines: Vec<usize> = self
            .decisions
            .iter()
            .map(|(decision, at)| {
                let document = documents.iter().find(|document| document.file == decision.file);
                document.map_or(0, |document| document.line(at))
            })
            .collect();
        let decisions = self.decisions.into_iter().zip(lines);
        let decisions = decisions
            .map(|((decision, _), line)| Decision { line, ..decision })
            .collect();
        debug_assert_eq!(
            self.changes.is_empty(),
            self.files == *before,
            "every change is reported"
        );
        Ok((self.files, self.changes, decisions))
    }

    /// Turns examples of the older formats into golden tests.
    pub(super) fn move_examples(&mut self) -> Result<(), MigrateError> {
        example::migrate(self)
    }
}

impl Document {
    pub(super) fn yaml(file: &str, whole: &str) -> Result<Self, MigrateError> {
        let original = Text::split(whole);
        let value = parse_yaml(&original.body).map_err(|error| MigrateError {
            file: String::from(file),
            line: error.line.unwrap_or_default(),
            message: format!("not valid YAML: {}", error.message),
            hint: format!("fix {file} first; `cogn validate` shows the position"),
        })?;
        if !value.is_object() {
            return Err(MigrateError {
                file: String::from(file),
                line: 0,
                message: String::from("the manifest is not a mapping"),
                hint: String::from("a manifest has lines such as `name: my-module`"),
            });
        }
        Ok(Self::new(file, Language::Yaml, original, value))
    }

    pub(super) fn json(file: &str, whole: &str) -> Result<Self, MigrateError> {
        let original = Text::split(whole);
        let value = serde_json::from_str(&original.body).map_err(|error| MigrateError {
            file: String::from(file),
            line: error.line(),
            message: format!("not valid JSON: {error}"),
            hint: format!("fix {file} first; `cogn validate` shows the position"),
        })?;
        Ok(Self::new(file, Language::Json, original, value))
    }

    fn new(file: &str, language: Language, original: Text, value: Value) -> Self {
        Self {
            file: String::from(file),
            language,
            text: original.body.clone(),
            original,
            value,
            edited: false,
        }
    }

    pub(super) fn file(&self) -> &str {
        &self.file
    }

    pub(super) fn value(&self) -> &Value {
        &self.value
    }

    pub(super) fn get(&self, at: &[&str]) -> Option<&Value> {
        edit::get(&self.value, &edit::path(at))
    }

    /// The root mapping. The root of a manifest is always a mapping.
    pub(super) fn map(&self) -> &Map<String, Value> {
        static EMPTY: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
        self.value.as_object().unwrap_or(&EMPTY)
    }

    /// The complete text with its original byte order mark and line endings.
    pub(super) fn whole(&self) -> String {
        self.original.join(&self.text)
    }

    fn edit(&mut self, edit: &Edit) -> Result<(), MigrateError> {
        let mut error = self.edit_error();
        error.message = format!("`{}` {}", edit.place(), error.message);
        edit.apply(&mut self.value).ok_or_else(|| error.clone())?;
        self.text = match self.language {
            Language::Yaml => yaml::apply(&self.text, edit),
            Language::Json => json::apply(&self.text, edit),
        }
        .ok_or(error)?;
        self.edited = true;
        Ok(())
    }

    /// Verifies that the edited text parses to the intended value.
    fn verify(&self) -> Result<(), MigrateError> {
        let read = match self.language {
            Language::Yaml => parse_yaml(&self.text).ok(),
            Language::Json => serde_json::from_str(&self.text).ok(),
        };
        if read.as_ref() == Some(&self.value) {
            Ok(())
        } else {
            Err(self.edit_error())
        }
    }

    fn edit_error(&self) -> MigrateError {
        let hint = match self.language {
            Language::Yaml => {
                "write it in plain block style, without aliases and tags in its sections, and try again"
            }
            Language::Json => "remove duplicate keys, and try again",
        };
        MigrateError {
            file: self.file.clone(),
            line: 0,
            message: String::from("cannot be edited without unintended changes"),
            hint: String::from(hint),
        }
    }

    fn line(&self, at: &[String]) -> usize {
        let offset = match self.language {
            Language::Yaml => yaml::offset(&self.text, at),
            Language::Json => json::offset(&self.text, at),
        };
        offset.map_or(0, |offset| line_at(&self.text, offset))
    }
}

/// The text of a file of the module, or why it cannot be read.
pub(super) fn text<'a>(files: &'a FileMap, file: &str) -> Result<&'a str, MigrateError> {
    let refuse = |message: &str| MigrateError {
        file: String::from(file),
        line: 0,
        message: String::from(message),
        hint: format!("fix {file} first; `cogn validate` shows details"),
    };
    match files.get(file) {
        None => Err(refuse("the file is missing")),
        Some(Entry::Read(bytes)) => std::str::from_utf8(bytes).map_err(|_| refuse("the file is not UTF-8")),
        Some(Entry::Listed { .. } | Entry::Refused(_)) => Err(refuse("the file cannot be read")),
    }
}
