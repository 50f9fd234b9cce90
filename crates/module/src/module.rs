//! A loaded module, the common form of all formats.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use ir::SharedJson;
use serde_json::{Map, Value};

use crate::format::Format;
use crate::lower;
use crate::manifest::{Manifest, Tier};
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
    /// The schemas of context types by reference, each as an input section.
    pub context_schemas: BTreeMap<String, Contract>,
    pub tests: Vec<TestPair>,
    pub assets: Vec<Asset>,
    /// Values derived from the fields above on first use.
    pub derived: DerivedCache,
}

/// Derived values that all runs of a module share.
#[derive(Debug, Default)]
pub struct DerivedCache {
    output_schema: OnceLock<SharedJson>,
    system_message: OnceLock<String>,
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
    /// The contract for answers: under the module's strictness and enum strategy.
    pub(crate) fn answer_contract(&self) -> &Contract {
        let manifest = &self.manifest;
        self.contract
            .for_answers(manifest.strictness, manifest.enums.strategy)
    }

    /// The schema of a complete answer.
    pub fn output_schema(&self) -> SharedJson {
        let schema = &self.derived.output_schema;
        schema.get_or_init(|| lower::output_schema(self).into()).clone()
    }

    /// The system message of every call.
    pub(crate) fn system_message(&self) -> &str {
        let message = &self.derived.system_message;
        message.get_or_init(|| lower::system_message(self))
    }

    /// The same module with another tier; values that the author left to the tier follow the new one.
    #[must_use]
    pub fn with_tier(&self, tier: Tier) -> Self {
        let mut source = self.source.clone();
        source.insert(String::from("tier"), Value::from(tier.as_str()));
        let schemas = self.context_schemas.iter();
        Self {
            format: self.format,
            manifest: Manifest::read(&source),
            source,
            prompt: self.prompt.clone(),
            contract: self.contract.duplicate(),
            context_schemas: schemas
                .map(|(reference, contract)| (reference.clone(), contract.duplicate()))
                .collect(),
            tests: self.tests.clone(),
            assets: self.assets.clone(),
            derived: DerivedCache::default(),
        }
    }

    pub fn name(&self) -> &str {
        &self.manifest.name
    }
}
