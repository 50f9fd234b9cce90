//! Composition of modules. `call` parses `@call` in prompts, `resolve` maps a requirement to a module, and
//! `graph` refuses cycles, chains that are too deep and unresolved modules before any model is called.
//! `flow` is the state machine of one composed run: which step may start, with which input, and the outcome.
//! This folder must not run steps; the engine does.

mod aggregate;
mod arguments;
mod call;
mod expression_scope;
mod field_use;
mod flow;
mod graph;
mod outcome;
mod resolve;
mod results;
mod segment;
mod step;
#[cfg(test)]
mod tests;

pub use call::{Call, CallError, CallOptions, calls};
pub use flow::{CompositionMachine, Outcome, StepStart};
pub use graph::{Graph, Node, build};
pub use resolve::{Dependency, FindModule, Reason, ResolveError, Resolved, dependencies, resolve};
pub use results::Results;

pub(crate) use field_use::add_field_use;
pub(crate) use segment::{Segment, segments};
