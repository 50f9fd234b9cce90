//! Conformance vectors: envelopes, inputs, streams and compositions with the expected verdict. A vector is a
//! JSON file with a subject and the expected result; a suite is a set of vectors. Vectors run against the
//! checks without repair, since repair would hide the faults under test. The built-in suite is embedded;
//! other suites are given as JSON values with their paths. No vector is skipped silently: one that cannot be
//! run or is malformed is in the report.

mod builtin_vectors;
mod composed;
mod evaluator;
mod report;
pub mod server;
mod suite;
mod vector;

pub use builtin_vectors::embedded;
pub use report::{ConformanceReport, LevelCount, Outcome, VectorProblem, VectorResult};
pub use suite::run;
pub use vector::{Expects, LEVELS, Vector};
