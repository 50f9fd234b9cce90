//! The module's contract: `schema.json` compiled as a whole, so that `$ref: #/$defs/...` inside a
//! section works, and consulted at a pointer. Nothing is ever fetched: a reference that leaves the
//! document, leads nowhere or leads back to itself is refused before compilation.

mod contract;
mod reference;
mod schema_view;
mod extract;
mod variant;
mod walk;

pub use contract::{Contract, SchemaError, Section};
pub use reference::{ReferenceProblem, ReferenceProblemKind, reference_problems, resolve};
pub(crate) use schema_view::SchemaView;
pub(crate) use extract::{extract, stands_alone};
pub use walk::{Visit, walk};
