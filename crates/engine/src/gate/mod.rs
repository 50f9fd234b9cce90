//! What meta is for: an answer that is not sure enough, or too risky, is asked for again from a stronger
//! back-end or goes to a person. `rule` says who passes, `judge` is the run machine's question behind every
//! answer, `reask` is the one more chance for a model whose answer breaks the contract.

mod evaluator;
mod reask;
mod rule;
#[cfg(test)]
mod tests;

pub use evaluator::GateEvaluator;
pub use rule::{GateAction, Gates, GateFailure, GateRule};

/// The key beside an envelope that says why a person is to look at it.
pub const REVIEW_KEY: &str = "_review";
