//! The golden tests of a module: those listed in its manifest, or else the pairs found in `tests/` and
//! `examples/`.

use serde_json::{Map, Value};

use super::LoadContext;
use crate::diagnostic::{Diagnostic, Rule};
use crate::document::{EntryPart, join};
use crate::file_map::{FileMap, normalise};
use crate::module::{Module, TestPair};

/// The file name endings of a pair, in order of precedence.
const ENDINGS: &[(&str, &[&str])] = &[
    (".input.json", &[".expected.json", ".output.json"]),
    ("-input.json", &["-expected.json", "-output.json"]),
    ("/input.json", &["/expected.json", "/output.json"]),
];

pub(super) fn listed_or_found(reading: &mut LoadContext<'_>, source: &Map<String, Value>) -> Vec<TestPair> {
    match source.get("tests").and_then(Value::as_array) {
        Some(listed) => listed
            .iter()
            .enumerate()
            .filter_map(|(index, line)| read_line(reading, index, line.as_str()?))
            .collect(),
        None => found(reading.files),
    }
}

/// Pairs by name; a file without a counterpart is reported by the checks.
fn found(files: &FileMap) -> Vec<TestPair> {
    files.paths().filter_map(|path| pair_of(files, path)).collect()
}

/// Pairs in `tests/` that the manifest of the module does not list. Without a list, every pair is a test.
pub fn unlisted_tests(files: &FileMap, module: &Module) -> Vec<TestPair> {
    if !module.source.contains_key("tests") {
        return Vec::new();
    }
    let listed = |found: &TestPair| {
        let mut pairs = module.tests.iter();
        pairs.any(|pair| pair.input == found.input && pair.expected == found.expected)
    };
    let mut unlisted = found(files);
    unlisted.retain(|pair| pair.input.starts_with("tests/") && !listed(pair));
    unlisted
}

fn pair_of(files: &FileMap, input: &str) -> Option<TestPair> {
    if !is_test_path(input) {
        return None;
    }
    let (stem, partners) = split_input(input)?;
    let expected = partners
        .iter()
        .map(|ending| format!("{stem}{ending}"))
        .find(|expected| files.contains(expected))?;
    Some(TestPair {
        name: name_of(input),
        input: String::from(input),
        expected,
    })
}

/// The stem of an input's path and the possible endings of its counterpart.
pub(crate) fn split_input(path: &str) -> Option<(&str, &'static [&'static str])> {
    ENDINGS
        .iter()
        .find_map(|(ending, partners)| Some((path.strip_suffix(ending)?, *partners)))
}

/// The stem of an expected answer's path and the ending of its input.
pub(crate) fn split_expected(path: &str) -> Option<(&str, &'static str)> {
    ENDINGS.iter().find_map(|(input, partners)| {
        let stem = partners.iter().find_map(|ending| path.strip_suffix(ending))?;
        Some((stem, *input))
    })
}

pub(crate) fn is_test_path(path: &str) -> bool {
    path.starts_with("tests/") || path.starts_with("examples/")
}

/// `tests/case1.input.json` is `case1`; a bare `examples/input.json` is `examples`.
fn name_of(input: &str) -> String {
    let stem = split_input(input).map_or(input, |(stem, _)| stem);
    let name = stem.rsplit('/').next().unwrap_or(stem);
    String::from(name)
}

/// Parses one line of `tests:`. Its form is validated with the manifest.
fn read_line(reading: &mut LoadContext<'_>, index: usize, line: &str) -> Option<TestPair> {
    let (input, expected) = line.split_once("->")?;
    let mut resolve = |path: &str| {
        let path = path.trim();
        let resolved = normalise(path);
        if resolved.is_none() {
            let place = reading.in_manifest(&join("/tests", &index.to_string()), EntryPart::Value);
            let message = format!("`{path}` points outside the module's folder");
            let diagnostic = Diagnostic::new(Rule::PATH_ESCAPES, message).at(place);
            reading.push(diagnostic.hint("store tests inside the module, under tests/"));
        }
        resolved
    };
    let input = resolve(input)?;
    let expected = resolve(expected)?;
    Some(TestPair {
        name: name_of(&input),
        input,
        expected,
    })
}
