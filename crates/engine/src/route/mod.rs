//! Routing: which back-end gets a request, and why. Inputs are a snapshot of the candidates, the request's
//! requirements and a seed; the result is an order of back-ends and a reason for every excluded one. No IO
//! and deterministic, so that any decision can be replayed.

mod candidate;
mod explanation;
mod filter;
mod needs;
mod order;
mod plan;
mod policy;
mod pool;
mod score;

pub use candidate::{Candidate, LoadSnapshot};
pub use explanation::{Explanation, Selected};
pub use filter::Rejection;
pub(crate) use needs::needs;
pub(crate) use plan::choose_policy;
pub use plan::{HostPolicy, PlanInput, RoutePlan, plan};
pub use policy::{HashKey, Policy, PolicyError};
pub use pool::{CandidateIndex, FeatureMask};
pub use score::draw;

#[cfg(test)]
mod tests;
