//! Rules for golden tests and examples: both files of a pair exist, inputs match the input schema, and
//! expected answers match as far as they are specified. An expected answer has one of three forms: an answer
//! (complete, or only the relevant part), `_validate` rules, or `$validate` schemas with an `$example`.

use jsonschema::error::ValidationErrorKind;
use serde_json::{Map, Value};

use super::violation::Violation;
use crate::diagnostic::{Diagnostic, Location, Rule};
use crate::document::{EntryPart, join};
use crate::format::Format;
use crate::load::{LoadContext, is_test_path, split_expected, split_input};
use crate::module::{Module, TestPair};
use crate::schema::Section;

/// Maximum number of diagnostics for one file.
const PER_FILE_MAX: usize = 5;

pub(super) fn check(reading: &mut LoadContext<'_>) {
    let Some(module) = reading.module.take() else {
        return;
    };
    let mut found = Vec::new();
    for (index, pair) in module.tests.iter().enumerate() {
        for file in [&pair.input, &pair.expected] {
            if !reading.files.contains(file) {
                found.push(missing(reading, index, file));
            }
        }
        if let Some(input) = reading.json(&pair.input) {
            check_input(reading, &module, pair, &input, &mut found);
        }
        if let Some(expected) = reading.json(&pair.expected) {
            check_expected(reading, &module, &pair.expected, &expected, &mut found);
        }
    }
    orphans(reading, &module, &mut found);
    reading.report.extend(found);
    reading.module = Some(module);
}

fn missing(reading: &LoadContext<'_>, index: usize, file: &str) -> Diagnostic {
    let place = reading.in_manifest(&join("/tests", &index.to_string()), EntryPart::Value);
    let near = crate::diagnostic::nearest(file, reading.files.paths().filter(|path| is_test_path(path)));
    let diagnostic = Diagnostic::new(Rule::MISSING_TEST_FILE, format!("`{file}` does not exist")).at(place);
    match near {
        Some(near) => diagnostic.hint(format!("did you mean `{near}`?")),
        None => diagnostic,
    }
}

/// Files without a counterpart, if pairs are found by name.
fn orphans(reading: &LoadContext<'_>, module: &Module, found: &mut Vec<Diagnostic>) {
    if module.source.contains_key("tests") {
        return;
    }
    let used = |path: &str| {
        module
            .tests
            .iter()
            .any(|pair| pair.input == path || pair.expected == path)
    };
    for path in reading
        .files
        .paths()
        .filter(|path| is_test_path(path) && !used(path))
    {
        let partner = match (split_input(path), split_expected(path)) {
            (Some((stem, endings)), _) => format!("{stem}{}", endings.first().copied().unwrap_or_default()),
            (None, Some((stem, ending))) => format!("{stem}{ending}"),
            (None, None) => continue,
        };
        let diagnostic = Diagnostic::new(Rule::ORPHAN_TEST_FILE, format!("`{path}` has no counterpart"));
        found.push(
            diagnostic
                .at(Location::file(path))
                .hint(format!("its counterpart would be `{partner}`")),
        );
    }
}

fn check_input(
    reading: &LoadContext<'_>,
    module: &Module,
    pair: &TestPair,
    input: &Value,
    found: &mut Vec<Diagnostic>,
) {
    let Value::Object(map) = input else {
        let diagnostic = Diagnostic::new(Rule::TEST_INPUT_INVALID, "a test's input must be an object");
        found.push(diagnostic.at(reading.in_json(&pair.input, "", EntryPart::Value)));
        return;
    };
    super::asset::media_files(reading, &pair.input, input, found);
    // Arguments given as free text are not validated against the schema, and neither are transport keys.
    if map.contains_key("$ARGUMENTS") {
        return;
    }
    let own: Map<String, Value> = map
        .iter()
        .filter(|(key, _)| !key.starts_with('_'))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let fit = SchemaFit {
        reading,
        module,
        file: &pair.input,
        rule: Rule::TEST_INPUT_INVALID,
    };
    fit.against(Section::Input, &Value::Object(own), "", Completeness::Yes, found);
}

/// Whether a value is complete or only a part of an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Completeness {
    Yes,
    No,
}

fn check_expected(
    reading: &LoadContext<'_>,
    module: &Module,
    file: &str,
    expected: &Value,
    found: &mut Vec<Diagnostic>,
) {
    let fit = SchemaFit {
        reading,
        module,
        file,
        rule: Rule::TEST_EXPECTED_INVALID,
    };
    let Value::Object(map) = expected else {
        fit.complain("", "an expected answer must be an object", found);
        return;
    };
    if map.contains_key("$validate") || map.contains_key("$example") {
        fit.schemas(map, found);
    } else if map.contains_key("_validate") || map.contains_key("_contains") {
        fit.rules(map, found);
    } else {
        fit.answer(map, "", found);
    }
}

struct SchemaFit<'a> {
    reading: &'a LoadContext<'a>,
    module: &'a Module,
    file: &'a str,
    rule: Rule,
}

impl SchemaFit<'_> {
    fn complain(&self, pointer: &str, message: &str, found: &mut Vec<Diagnostic>) {
        let place = self.reading.in_json(self.file, pointer, EntryPart::Value);
        found.push(Diagnostic::new(self.rule, message).at(place));
    }

    /// `{$validate: {data: <schema>}, $example: <envelope>}`
    fn schemas(&self, map: &Map<String, Value>, found: &mut Vec<Diagnostic>) {
        if let Some(schemas) = map.get("$validate").and_then(Value::as_object) {
            for (key, schema) in schemas {
                let pointer = join("/$validate", key);
                if !["ok", "meta", "data", "error", "partial_data"].contains(&key.as_str()) {
                    self.complain(&pointer, &format!("`{key}` is not part of an envelope"), found);
                } else if !jsonschema::draft7::meta::is_valid(schema) {
                    self.complain(&pointer, &format!("`{key}` is not a valid JSON Schema"), found);
                }
            }
        } else if map.contains_key("$validate") {
            self.complain(
                "/$validate",
                "`$validate` must map parts of the envelope to schemas",
                found,
            );
        }
        match map.get("$example") {
            Some(Value::Object(example)) => self.answer(example, "/$example", found),
            Some(_) => self.complain("/$example", "`$example` must be an envelope", found),
            None => {}
        }
    }

    /// `{_validate: {required: [...], confidence_min: 0.8}, _contains: {...}}`
    fn rules(&self, map: &Map<String, Value>, found: &mut Vec<Diagnostic>) {
        let number = |value: &Value| value.as_f64().is_some_and(|number| (0.0..=1.0).contains(&number));
        let texts = |value: &Value| {
            value
                .as_array()
                .is_some_and(|list| list.iter().all(Value::is_string))
        };
        for (key, value) in map
            .get("_validate")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            let pointer = join("/_validate", key);
            let problem = match key.as_str() {
                "required" if !texts(value) => "must be a list of fields",
                "confidence_min" | "confidence_max" if !number(value) => "must be a number from 0 to 1",
                "rationale_min_length" if value.as_u64().is_none() => "must be an integer",
                "contains" | "not_contains" if !(texts(value) || value.is_object() || value.is_string()) => {
                    "must be a string or a list of strings"
                }
                "required"
                | "confidence_min"
                | "confidence_max"
                | "rationale_min_length"
                | "contains"
                | "not_contains" => continue,
                _ => "is not a known rule",
            };
            self.complain(&pointer, &format!("`_validate.{key}` {problem}"), found);
        }
        if map.get("_contains").is_some_and(|value| !value.is_object()) {
            self.complain(
                "/_contains",
                "`_contains` must map paths to lists of values",
                found,
            );
        }
    }

    /// An envelope or bare data. An envelope with ok, meta and content is complete and must match as a whole;
    /// otherwise only the specified parts must match.
    fn answer(&self, map: &Map<String, Value>, pointer: &str, found: &mut Vec<Diagnostic>) {
        let Some(ok) = map.get("ok") else {
            let bare = self.module.format < Format::V2_0;
            let whole = if bare { Completeness::Yes } else { Completeness::No };
            let data = match map.get("data") {
                Some(data) if map.contains_key("meta") => (data.clone(), join(pointer, "data")),
                _ => (Value::Object(map.clone()), String::from(pointer)),
            };
            self.against(Section::Data, &data.0, &data.1, whole, found);
            return;
        };
        let Value::Bool(ok) = ok else {
            self.complain(&join(pointer, "ok"), "`ok` must be true or false", found);
            return;
        };
        let content = if *ok { "data" } else { "error" };
        let has = |key: &str| map.contains_key(key);
        let separate = self.module.format.separates_meta();
        let whole = if has(content) && (has("meta") || !separate) {
            Completeness::Yes
        } else {
            Completeness::No
        };
        for (key, section) in [
            ("meta", Section::Meta),
            ("data", Section::Data),
            ("error", Section::Error),
        ] {
            if let Some(value) = map.get(key) {
                self.against(section, value, &join(pointer, key), whole, found);
            }
        }
        if whole == Completeness::Yes {
            self.against(
                Section::Envelope,
                &Value::Object(map.clone()),
                pointer,
                whole,
                found,
            );
        }
    }

    fn against(
        &self,
        section: Section,
        value: &Value,
        pointer: &str,
        whole: Completeness,
        found: &mut Vec<Diagnostic>,
    ) {
        // A schema that cannot be compiled has been reported at its position.
        let Ok(Some(validator)) = self.module.contract.validator(section) else {
            return;
        };
        if validator.is_valid(value) {
            return;
        }
        let complaints = validator
            .errors(value)
            .filter(|error| whole == Completeness::Yes || !is_about_absence(error.kind()))
            .take(PER_FILE_MAX);
        for error in complaints {
            let violation = Violation::of(&error);
            let full = format!("{pointer}{}", violation.pointer);
            let part = if violation.at_key {
                EntryPart::Key
            } else {
                EntryPart::Value
            };
            let place = self.reading.in_json(self.file, &full, part);
            let message = format!("{} (schema `{}`)", violation.message, section.as_str());
            let mut diagnostic = Diagnostic::new(self.rule, message).at(place);
            if let Some(hint) = violation.hint {
                diagnostic = diagnostic.hint(hint);
            }
            found.push(diagnostic);
        }
    }
}

/// Violations that a part of an answer can have although the complete answer has none.
fn is_about_absence(kind: &ValidationErrorKind) -> bool {
    matches!(
        kind,
        ValidationErrorKind::Required { .. }
            | ValidationErrorKind::MinItems { .. }
            | ValidationErrorKind::MinProperties { .. }
            | ValidationErrorKind::Contains
            | ValidationErrorKind::OneOfNotValid { .. }
            | ValidationErrorKind::OneOfMultipleValid { .. }
            | ValidationErrorKind::AnyOf { .. }
            | ValidationErrorKind::Not { .. }
    )
}
