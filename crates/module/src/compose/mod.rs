//! Modules made of others. `call` reads `@call` in prompts, `link` finds out which module a name stands
//! for, `graph` follows the names and refuses circles, chains that are too deep and what cannot be had,
//! all before any model is asked. `flow` is one composed run as a pure machine: which step may start with
//! which input, and what comes of the results. Whoever runs the steps is no business of this folder.

mod aggregate;
mod outcome;
mod arguments;
mod call;
mod flow;
mod graph;
mod resolve;
mod results;
mod expression_scope;
mod segment;
mod step;
#[cfg(test)]
mod tests;

pub use call::{Call, CallOptions, CallError, calls};
pub use flow::{CompositionMachine, Outcome, StepStart};
pub use graph::{Graph, Node, build};
pub use resolve::{ResolveError, Resolved, FindModule, Dependency, Reason, resolve, dependencies};
pub use results::Results;

pub(crate) use segment::{Segment, segments};
