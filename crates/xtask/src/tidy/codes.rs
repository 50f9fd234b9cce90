//! Every registered code is emitted in a test, except those that the registry lists as pending. A code counts
//! as emitted if a test expects it: in an identifier or a string of test code, in a snapshot, or in the expected
//! diagnostics of a corpus. Tests of the registries and of their pages list codes that nothing emitted and do
//! not count.

use std::collections::BTreeSet;

use crate::{git_files, source};

const CODES: &str = "crates/module/src/code/mod.rs";
const RULES: &str = "crates/module/src/diagnostic/rule.rs";

/// Test code that names codes without a run that emits them: the registries, their pages, simulated defects of a
/// server under test.
const NOT_EMITTING: &[&str] = &[
    "crates/module/src/code/tests.rs",
    "crates/module/tests/it/pages.rs",
    "crates/cogn/tests/it/explain.rs",
    "crates/cogn/tests/it/conformance_server/defect.rs",
];

/// Non-test code that names every code.
const LISTS: &[&str] = &[CODES, RULES, "crates/cogn/src/error_pages.rs"];

#[test]
fn every_registered_code_is_emitted_in_a_test() {
    let expected = expected_in_tests();
    let pending = pending();
    let missing: Vec<_> = registered()
        .into_iter()
        .filter(|code| !pending.contains(code) && !expected.contains(code))
        .collect();
    assert!(
        missing.is_empty(),
        "no test emits {missing:?}: test them, remove them, or list them in `PENDING` of {CODES}"
    );
}

#[test]
fn no_pending_code_is_used() {
    let pending = pending();
    assert!(!pending.is_empty(), "the list `PENDING` was not found in {CODES}");
    for path in git_files::sources() {
        if LISTS.contains(&path.as_str()) {
            continue;
        }
        let words = source::words(&git_files::read(&path)).expect("a source file is Rust");
        let used: Vec<_> = pending.intersection(&words).collect();
        assert!(
            used.is_empty(),
            "{path} uses {used:?}, which {CODES} lists as pending"
        );
    }
}

/// The first column of both registries.
fn registered() -> BTreeSet<String> {
    let mut codes = BTreeSet::new();
    for (path, prefixes) in [(CODES, "EW"), (RULES, "M")] {
        let text = git_files::read(path);
        let rows = text.lines().filter_map(|line| line.strip_prefix("    "));
        let first = rows.filter_map(|row| row.split_once(' ').map(|(first, _)| first));
        codes.extend(
            first
                .filter(|word| is_code(word) && word.starts_with(|kind| prefixes.contains(kind)))
                .map(String::from),
        );
    }
    assert!(codes.len() > 130, "only {} codes were found", codes.len());
    codes
}

/// The codes of the list `PENDING`.
fn pending() -> BTreeSet<String> {
    let text = git_files::read(CODES);
    let list = text.split_once("const PENDING").map_or("", |(_, rest)| rest);
    let list = list.split_once("];").map_or("", |(list, _)| list);
    words_of(list).collect()
}

fn expected_in_tests() -> BTreeSet<String> {
    let mut codes = BTreeSet::new();
    for path in git_files::files() {
        if NOT_EMITTING.contains(&path.as_str()) || !path.starts_with("crates/") {
            continue;
        }
        if path.ends_with(".snap") {
            codes.extend(words_of(&git_files::read(&path)));
        } else if path.starts_with("crates/module/tests/corpus/") {
            codes.extend(expected_diagnostics(&git_files::read(&path)));
        } else if is_test(&path) {
            codes.extend(source::words(&git_files::read(&path)).expect("a test is Rust"));
        }
    }
    codes
}

fn is_test(path: &str) -> bool {
    let is_support = path.starts_with("crates/testkit/src/");
    path.ends_with(".rs") && (is_support || path.ends_with("/tests.rs") || path.contains("/tests/"))
}

/// The parts of a corpus file between `--- expect` and the next case.
fn expected_diagnostics(text: &str) -> Vec<String> {
    let parts = text.split("--- expect\n").skip(1);
    let expected = parts.map(|part| part.split("\n=").next().unwrap_or_default());
    expected
        .flat_map(|part| words_of(part).collect::<Vec<_>>())
        .collect()
}

fn words_of(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    words.filter(|word| is_code(word)).map(String::from)
}

fn is_code(word: &str) -> bool {
    matches!(word.as_bytes(), [b'E' | b'W' | b'M', digits @ ..]
        if digits.len() == 4 && digits.iter().all(u8::is_ascii_digit))
}

#[test]
fn words_of_comments_and_attributes_are_not_counted() {
    let words = source::words(
        "/// E1001\nfn f() { // E1002\n assert_eq!(code(\"\\nE1003 \"), Code::E1004); }\n#[x = \"E1005\"] struct S;",
    )
    .expect("Rust");
    let codes: Vec<_> = words.into_iter().filter(|word| is_code(word)).collect();
    assert_eq!(codes, ["E1003", "E1004"]);
}
