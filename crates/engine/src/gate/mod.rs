//! Gates: an answer with too little confidence or too much risk is requested again from a stronger back-end
//! or needs a review. `rule` has the criteria, `evaluator` is the reply policy of the run machine, and
//! `reask` builds the request after an answer that violates the contract.

mod evaluator;
mod reask;
mod rule;
#[cfg(test)]
mod tests;

pub use evaluator::GateEvaluator;
pub use rule::{GateAction, GateFailure, GateRule, Gates};

/// The annotation of an envelope that has the reasons for a review.
pub const REVIEW_KEY: &str = "_review";
