//! A running server held against the specification, from outside: negotiation, chunks, recovery, media and
//! degradation. Every check is a pure function from the answers so far to the next request or the verdict;
//! whoever owns a connection carries the requests. Nothing here knows which server it talks to.

mod response;
mod request;
mod check;
mod checks;
mod fixtures;
mod png;
mod report;
mod minimal_input;
mod test_module;
#[cfg(test)]
mod tests;

pub use response::ServerResponse;
pub use request::{ServerRequest, Method, Transport};
pub use check::{Check, Capability, Next, CheckEnd};
pub use checks::checks;
pub use fixtures::{FixtureFile, kit};
pub use report::{CheckRow, ServerOutcome, ServerReport};
pub use test_module::{ListedModule, TestModule, TestModules};
