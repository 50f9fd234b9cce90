//! Fixture files: modules made for these checks, and a script for a scripted back-end. With them a server
//! can run every check with reproducible results.

use serde_json::{Value, json};

use super::png;

/// One fixture file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixtureFile {
    /// Relative, with slashes.
    pub path: &'static str,
    pub text: &'static str,
}

macro_rules! files {
    ($($path:literal),+ $(,)?) => {
        &[$(FixtureFile { path: $path, text: include_str!(concat!("../../../kit/", $path)) }),+]
    };
}

const FILES: &[FixtureFile] = files![
    "README.md",
    "script.yaml",
    "modules/conformance-both/module.yaml",
    "modules/conformance-both/prompt.md",
    "modules/conformance-both/schema.json",
    "modules/conformance-sync/module.yaml",
    "modules/conformance-sync/prompt.md",
    "modules/conformance-sync/schema.json",
    "modules/conformance-streaming/module.yaml",
    "modules/conformance-streaming/prompt.md",
    "modules/conformance-streaming/schema.json",
    "modules/conformance-picture/module.yaml",
    "modules/conformance-picture/prompt.md",
    "modules/conformance-picture/schema.json",
];

pub fn kit() -> &'static [FixtureFile] {
    FILES
}

/// The input for a fixture module.
pub(super) fn input(module: &str) -> Option<Value> {
    let text = "Two words";
    match module {
        "conformance-both" | "conformance-sync" | "conformance-streaming" => Some(json!({"text": text})),
        "conformance-picture" => Some(json!({"text": text, "images": [png::good()]})),
        _ => None,
    }
}
