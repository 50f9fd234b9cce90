//! The module's contract: `schema.json`, compiled as a whole so that `$ref: #/$defs/...` inside a section
//! resolves, and applied at a pointer. Remote references are never fetched: a reference that points outside
//! the document, does not resolve or resolves to itself is refused before compilation, and so is a schema that
//! [`admission`] does not admit.

pub mod admission;
mod compiled;
mod contract;
mod extract;
mod local_references;
mod reference;
mod schema_view;
mod variant;
mod walk;

pub use compiled::CompiledSchema;
pub use contract::{Contract, SchemaError, Section};
pub(crate) use extract::{extract, stands_alone};
pub use reference::{ReferenceProblem, ReferenceProblemKind, reference_problems, resolve};
pub(crate) use schema_view::SchemaView;
pub use walk::{Visit, walk};
