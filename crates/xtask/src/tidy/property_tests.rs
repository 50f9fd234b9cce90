//! `cargo x test --long` sets the number of cases of every property test through the environment. A fixed number
//! in the source would override it.

use crate::git_files;

/// Whether a number of cases is written into the configuration itself.
fn fixes_cases(line: &str) -> bool {
    ["with_cases(", "cases: "].iter().any(|start| {
        let argument = line.split_once(start).map(|(_, argument)| argument);
        argument.is_some_and(|argument| argument.starts_with(|first: char| first.is_ascii_digit()))
    })
}

#[test]
fn number_of_cases_comes_from_the_environment() {
    let mut fixed = Vec::new();
    for path in git_files::ending(".rs") {
        let text = git_files::read(&path);
        if !text.contains("ProptestConfig") || path.ends_with("tidy/property_tests.rs") {
            continue;
        }
        let lines = text.lines().enumerate().filter(|(_, line)| fixes_cases(line));
        fixed.extend(lines.map(|(at, _)| format!("{path}:{}", at + 1)));
    }
    assert!(fixed.is_empty(), "{fixed:#?}");
}

#[test]
fn fixed_numbers_are_found() {
    assert!(fixes_cases("#![proptest_config(ProptestConfig::with_cases(64))]"));
    assert!(fixes_cases(
        "ProptestConfig { cases: 48, ..ProptestConfig::default() }"
    ));
    assert!(!fixes_cases("ProptestConfig::with_cases(cases(64))"));
    assert!(!fixes_cases("cases: if asked > 256 { asked } else { 48 },"));
}
