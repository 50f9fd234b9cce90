//! Which back-end gets a request, and why. Pure: a snapshot of the candidates, the request's needs and a
//! seed go in; an order of back-ends and a reason for every one left out come back. The same inputs give the
//! same plan, so that any decision can be replayed.

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
pub use plan::{PlanInput, HostPolicy, RoutePlan, plan};
pub use policy::{HashKey, Policy, PolicyError};
pub use pool::{CandidateIndex, FeatureMask};
pub use score::draw;

#[cfg(test)]
mod tests;
