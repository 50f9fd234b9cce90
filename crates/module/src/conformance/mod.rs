//! Conformance: whether envelopes, inputs and streams that are known to be right or wrong are judged so.
//! A vector is a JSON file that says what it holds and what is to come of it; a suite is a set of them.
//! Vectors run against the checks without repair, since repair would hide what they ask about. Our own
//! suite is embedded; any other comes in as JSON values with their paths. Nothing is skipped silently:
//! a vector that cannot be run, or is itself malformed, is in the report.

mod composed;
mod builtin_vectors;
mod evaluator;
mod report;
pub mod server;
mod suite;
mod vector;

pub use builtin_vectors::embedded;
pub use report::{LevelCount, Outcome, VectorProblem, ConformanceReport, VectorResult};
pub use suite::run;
pub use vector::{Expects, LEVELS, Vector};
