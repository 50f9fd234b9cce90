//! Admission of JSON Schemas that this process did not write: of requests, tools, modules and test cases.
//! A schema is compiled only after this check. It walks the schema without recursion, enforces limits on the
//! size, the references and the patterns, and computes how often one value can be evaluated
//! (`cost.rs`); the references of a small schema can multiply into an unbounded number of evaluations.
//!
//! Every keyword counts, whatever the draft: a keyword that a draft ignores makes the result too high, never
//! too low.

mod cost;
mod graph;
mod pattern;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;

use jsonschema::Draft;
use serde_json::Value;

pub(super) use cost::Cost;
use graph::SchemaGraph;

use super::contract::requested_draft;
use super::local_references::localize;
use crate::limits;

/// Why a schema is not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    Nodes,
    Bytes,
    References,
    ReferencePath,
    ReferenceLoop,
    Definitions,
    Patterns,
    Repetition,
    Cost,
    EmbeddedId,
}

impl Refusal {
    /// The name of the limit, as in error details and the documentation.
    pub fn limit(self) -> &'static str {
        match self {
            Self::Nodes => "schema_nodes_max",
            Self::Bytes => "schema_bytes_max",
            Self::References => "schema_references_max",
            Self::ReferencePath => "schema_reference_path_max",
            Self::ReferenceLoop => "schema_reference_loop",
            Self::Definitions => "schema_definitions_max",
            Self::Patterns => "schema_patterns_max",
            Self::Repetition => "schema_repetition_max",
            Self::Cost => "schema_cost_max",
            Self::EmbeddedId => "schema_embedded_id",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.limit();
        match self {
            Self::Nodes => write!(f, "more than {} JSON values", limits::SCHEMA_NODES_MAX),
            Self::Bytes => write!(
                f,
                "more than {} bytes of pointers and texts",
                limits::SCHEMA_BYTES_MAX
            ),
            Self::References => write!(f, "more than {} references", limits::SCHEMA_REFERENCES_MAX),
            Self::ReferencePath => write!(
                f,
                "more than {} schemas in a chain apply to the same value",
                limits::SCHEMA_PATH_MAX
            ),
            Self::ReferenceLoop => write!(f, "a reference applies to the value it started from"),
            Self::Definitions => write!(
                f,
                "more than {} definitions or targets of references",
                limits::SCHEMA_DEFINITIONS_MAX
            ),
            Self::Patterns => write!(f, "more than {} patterns", limits::SCHEMA_PATTERNS_MAX),
            Self::Repetition => write!(
                f,
                "a pattern that is longer than {} characters with its repetitions written out",
                limits::SCHEMA_REPETITION_MAX
            ),
            Self::Cost => write!(
                f,
                "one value can be evaluated more than {} times",
                limits::SCHEMA_COST_MAX
            ),
            Self::EmbeddedId => write!(
                f,
                "a reference in or through a part with its own `$id` or `$schema`"
            ),
        }?;
        write!(f, " ({name})")
    }
}

impl std::error::Error for Refusal {}

/// What admission found out about a schema.
#[derive(Clone, Debug, Default)]
pub struct Admitted {
    pub(super) cost: Cost,
    /// A reference without a target in the document. Such a schema can be forwarded, but not compiled.
    pub(super) unresolved: Option<String>,
}

/// Admits a schema from outside.
pub fn admit(schema: &Value) -> Result<Admitted, Refusal> {
    let (_, admitted) = admit_as(schema, requested_draft(schema))?;
    Ok(admitted)
}

/// Admits a schema of this draft; returns it with the references that admission followed.
pub(super) fn admit_as(schema: &Value, draft: Draft) -> Result<(Cow<'_, Value>, Admitted), Refusal> {
    if !schema.is_object() {
        return Ok((Cow::Borrowed(schema), Admitted::default()));
    }
    graph::check_size(schema)?;
    let local = localize(schema, draft)?;
    let graph = SchemaGraph::of(&local.schema, draft, local.root.as_deref())?;
    let admitted = Admitted {
        cost: Cost::of(&graph)?,
        unresolved: graph.unresolved.map(String::from),
    };
    drop(graph);
    Ok((local.schema, admitted))
}
