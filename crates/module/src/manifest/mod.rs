//! The manifest of a module, in one internal form for every format. Omitted values are filled from the tier;
//! the manifest as written is kept in [`crate::Module::source`]. This is plain data; the checks validate it.

mod composition;
mod context;
mod media;
mod policy;
mod read;
mod response;
mod tier;

use std::collections::BTreeMap;

use ir::GenerationOptions;
use serde::{Deserialize, Serialize};

pub use composition::{Aggregate, Composition, Dataflow, Pattern, Requirement, Route};
pub use context::{Context, ContextAccept, ContextEmit, ContextMode};
pub use media::{MediaConstraints, Modalities, Modality};
pub use policy::{Access, Policies, ToolPolicy, Tools};
pub use response::{ChunkType, Response, ResponseMode};
pub use tier::{EnumStrategy, Strictness, Tier};

/// A manifest with all defaults applied.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Manifest {
    pub name: String,
    pub version: String,
    pub responsibility: String,
    /// The tier that applies; `decision` if the format has none.
    pub tier: Tier,
    /// Whether the author declared the tier; the tier rules apply only then.
    pub tier_declared: bool,
    pub strictness: Strictness,
    pub excludes: Vec<String>,
    pub policies: Policies,
    pub tools: Tools,
    pub response: Response,
    pub modalities: Modalities,
    pub overflow: Overflow,
    pub enums: Enums,
    pub failure: Failure,
    pub runtime: RuntimeRequirements,
    /// Settings of the model. An extension of this runtime.
    pub generation: GenerationOptions,
    pub io: Io,
    pub compat: Compat,
    pub risk_rule: RiskRule,
    /// Test pairs as written: `X.input.json -> Y.expected.json`.
    pub tests: Vec<String>,
    pub context: Context,
    pub composition: Composition,
    pub invocation: Invocation,
    /// The module's own codes, E5000 to E9999, with their meaning.
    pub error_codes: BTreeMap<String, String>,
    /// What a v1 module requires of every answer.
    pub constraints: Constraints,
}

/// The handling of insights beyond the schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Overflow {
    pub enabled: bool,
    pub recoverable: bool,
    pub max_items: u64,
    pub require_suggested_mapping: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Enums {
    pub strategy: EnumStrategy,
    pub unknown_tag: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureContract {
    #[default]
    ErrorUnion,
    Throw,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Failure {
    pub contract: FailureContract,
    pub partial_allowed: bool,
    pub must_return_error_schema: bool,
    /// Whether an answer that violates the contract may be reasked once. An extension of this runtime.
    pub reask: bool,
}

impl Default for Failure {
    fn default() -> Self {
        Self {
            contract: FailureContract::ErrorUnion,
            partial_allowed: true,
            must_return_error_schema: true,
            reask: true,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RuntimeRequirements {
    pub structured_output: bool,
    pub max_input_tokens: Option<u64>,
    pub preferred_capabilities: Vec<String>,
}

impl Default for RuntimeRequirements {
    fn default() -> Self {
        Self {
            structured_output: true,
            max_input_tokens: None,
            preferred_capabilities: Vec::new(),
        }
    }
}

/// References such as `./schema.json#/data`, as written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Io {
    pub input: Option<String>,
    pub data: Option<String>,
    pub meta: Option<String>,
    pub error: Option<String>,
}

/// Which older payloads a runtime may wrap for the module. The two `accepts` keys are independent; they come
/// from two versions of the format.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Compat {
    pub accepts_v21_payload: bool,
    pub accepts_v22_payload: bool,
    pub runtime_auto_wrap: bool,
    pub schema_output_alias: OutputAlias,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputAlias {
    #[default]
    Data,
    Output,
}

/// How `meta.risk` is derived from the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RiskRule {
    #[default]
    MaxChangesRisk,
    MaxIssuesRisk,
    Explicit,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Invocation {
    pub user_invocable: bool,
    pub agent_invocable: bool,
}

impl Default for Invocation {
    fn default() -> Self {
        Self {
            user_invocable: true,
            agent_invocable: true,
        }
    }
}

/// v1 `constraints`. `no_network` is converted to a policy when the manifest is read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Constraints {
    pub no_network: bool,
    pub require_confidence: bool,
    pub require_rationale: bool,
}
