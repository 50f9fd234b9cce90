//! Rules for golden tests and examples: both files of a pair exist and are run, inputs match the input schema,
//! and expected answers can be fulfilled: they are parsed by [`Expectation`], as for a test, and the values in
//! them match the schemas as far as they are specified.

use jsonschema::error::ValidationErrorKind;
use serde_json::{Map, Value};

use super::violation::Violation;
use crate::diagnostic::{Diagnostic, Location, Rule};
use crate::document::{EntryPart, join};
use crate::golden::{Described, Expectation, ExpectedAnswer, unlisted_tests};
use crate::input::{FREE_TEXT_KEY, input_view, place_free_text};
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

/// Files that are never run: without a counterpart, or not listed in the manifest.
fn orphans(reading: &LoadContext<'_>, module: &Module, found: &mut Vec<Diagnostic>) {
    let unlisted = unlisted_tests(reading.files, module);
    for pair in &unlisted {
        let message = format!("`{}` and `{}` are never run", pair.input, pair.expected);
        let hint = format!(
            "add `- {} -> {}` to `tests`, or remove `tests` to run all pairs",
            pair.input, pair.expected
        );
        let diagnostic = Diagnostic::new(Rule::UNLISTED_TEST, message);
        found.push(diagnostic.at(Location::file(&pair.input)).hint(hint));
    }
    let used = |path: &str| {
        let mut pairs = module.tests.iter().chain(&unlisted);
        pairs.any(|pair| pair.input == path || pair.expected == path)
    };
    // A manifest that lists its tests may have other files in `examples/`.
    let is_listed = module.source.contains_key("tests");
    let relevant = |path: &str| is_test_path(path) && (!is_listed || path.starts_with("tests/"));
    for path in reading.files.paths().filter(|path| relevant(path) && !used(path)) {
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
    let mut map = map.clone();
    if let Err(error) = place_free_text(module, &mut map) {
        let diagnostic = Diagnostic::new(Rule::TEST_INPUT_INVALID, error.message);
        found.push(diagnostic.at(reading.in_json(&pair.input, "/$ARGUMENTS", EntryPart::Value)));
        return;
    }
    // Free text that is not a declared field is not validated, and neither are keys of the runtime.
    if input_view(module).is_none_or(|view| !view.declares(FREE_TEXT_KEY)) {
        map.shift_remove(FREE_TEXT_KEY);
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
    match Expectation::parse(module, expected) {
        Ok(expectation) => {
            if let Some(answer) = &expectation.answer {
                fit.answer(answer, Completeness::No, found);
            }
            if let Some(example) = &expectation.example {
                fit.answer(example, fit.completeness(example), found);
            }
        }
        Err(problems) => {
            for problem in problems.into_iter().take(PER_FILE_MAX) {
                fit.complain(&problem.pointer, &problem.message, found);
            }
        }
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

    /// An example with ok, meta and content is a complete envelope.
    fn completeness(&self, example: &ExpectedAnswer) -> Completeness {
        let has = |key: &str| example.values.contains_key(key);
        let content = match example.values.get("ok") {
            Some(Value::Bool(true)) => "data",
            Some(_) => "error",
            None => return Completeness::No,
        };
        match has(content) && (has("meta") || !self.module.format.separates_meta()) {
            true => Completeness::Yes,
            false => Completeness::No,
        }
    }

    /// Whether the expected values are an envelope that leaves out nothing that the schemas require. Rules
    /// across sections apply to it; in a part of an answer they would report what the rest decides.
    fn is_whole_answer(&self, answer: &ExpectedAnswer) -> bool {
        let fits = |key: &str, section: Section| {
            let validator = self.module.contract.validator(section).ok().flatten();
            let value = answer.values.get(key);
            value.is_none_or(|value| validator.is_none_or(|validator| validator.is_valid(value)))
        };
        self.completeness(answer) == Completeness::Yes
            && fits("meta", Section::Meta)
            && fits("data", Section::Data)
            && fits("error", Section::Error)
    }

    fn answer(&self, answer: &ExpectedAnswer, whole: Completeness, found: &mut Vec<Diagnostic>) {
        let values = Value::Object(answer.values.clone());
        if answer.describes == Described::Data {
            return self.against(Section::Data, &values, &answer.pointer, whole, found);
        }
        for (key, section) in [
            ("meta", Section::Meta),
            ("data", Section::Data),
            ("error", Section::Error),
        ] {
            if let Some(value) = answer.values.get(key) {
                self.against(section, value, &join(&answer.pointer, key), whole, found);
            }
        }
        if whole == Completeness::Yes || self.is_whole_answer(answer) {
            self.against(Section::Envelope, &values, &answer.pointer, whole, found);
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
