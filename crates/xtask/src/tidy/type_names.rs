//! A type name means one thing, or two at most. A reader who searches for a name finds the type they meant.

use std::collections::BTreeMap;

use crate::git_files;
use crate::source;

const TYPES_MAX: usize = 2;

/// Names that stand for more types, each inside a module that says which. Shrink only.
const MANY: &[&str] = &[
    "Action",
    "Cli",
    "Command",
    "Error",
    "FastChunk",
    "Kind",
    "Outcome",
    "Output",
    "Purpose",
    "Settings",
    "State",
    "StreamDecoder",
    "StreamEncoder",
];

const MANY_MAX: usize = 13;

#[test]
fn a_type_name_stands_for_two_types_at_most() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in git_files::sources() {
        for name in source::type_names(&git_files::read(&path)).expect("a source file is Rust") {
            places.entry(name).or_default().push(path.clone());
        }
    }
    places.retain(|_, paths| paths.len() > TYPES_MAX);
    let unlisted: Vec<_> = places
        .iter()
        .filter(|(name, _)| !MANY.contains(&name.as_str()))
        .collect();
    assert!(unlisted.is_empty(), "names of many types: {unlisted:#?}");
    for name in MANY {
        assert!(
            places.contains_key(*name),
            "{name} is rare now: strike it from the list"
        );
    }
    assert!(MANY.len() <= MANY_MAX, "the list may only shrink");
}
