//! A loaded module: the one type that every format becomes.

use serde_json::{Map, Value};

use crate::format::Format;
use crate::manifest::Manifest;
use crate::schema::Contract;

#[derive(Debug)]
pub struct Module {
    pub format: Format,
    pub manifest: Manifest,
    /// The manifest as its author wrote it, unknown keys included.
    pub source: Map<String, Value>,
    /// The prompt template, placeholders unexpanded.
    pub prompt: String,
    pub contract: Contract,
    pub tests: Vec<TestPair>,
    pub assets: Vec<Asset>,
}

/// A golden test: paths relative to the module's root. v0 and v1 examples become such pairs too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestPair {
    pub name: String,
    pub input: String,
    pub expected: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asset {
    pub path: String,
    pub size_bytes: u64,
}

impl Module {
    pub fn name(&self) -> &str {
        &self.manifest.name
    }
}
