//! Conformance checks of a running server through its public API: negotiation, chunks, recovery, media and
//! degradation. Every check is a pure function from the responses so far to the next request or the result;
//! the caller sends the requests. Nothing here may depend on a particular server.

mod check;
mod checks;
mod fixtures;
mod minimal_input;
mod png;
mod report;
mod request;
mod response;
mod test_module;
#[cfg(test)]
mod tests;

pub use check::{Capability, Check, CheckEnd, Next};
pub use checks::checks;
pub use fixtures::{FixtureFile, kit};
pub use report::{CheckRow, ServerOutcome, ServerReport};
pub use request::{Method, ServerRequest, Transport};
pub use response::ServerResponse;
pub use test_module::{ListedModule, TestModule, TestModules};
