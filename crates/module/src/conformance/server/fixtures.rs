//! Modules made for these checks, and a script that answers for their model: a server that has them can be
//! checked in everything, the same way every time.

use serde_json::{Value, json};

use super::png;

/// One file of the kit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixtureFile {
    /// Relative, with slashes.
    pub path: &'static str,
    pub text: &'static str,
}

macro_rules! files {
    ($($path:literal),+ $(,)?) => {
        &[$(KitFile { path: $path, text: include_str!(concat!("../../../kit/", $path)) }),+]
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

/// What a module of the kit is given.
pub(super) fn input(module: &str) -> Option<Value> {
    let text = "Two words";
    match module {
        "conformance-both" | "conformance-sync" | "conformance-streaming" => Some(json!({"text": text})),
        "conformance-picture" => Some(json!({"text": text, "images": [png::good()]})),
        _ => None,
    }
}
