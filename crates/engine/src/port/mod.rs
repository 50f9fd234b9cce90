//! What a run needs from the outside, as small traits beside their caller. Adapters live in other
//! crates and must pass the suites of `testkit::conformance`.

mod clock;
mod journal;
mod upstream;

pub use clock::Clock;
pub use journal::{Entry, Finish, Journal, JournalError, Kind, NewRun, Rendered, RunRow, State};
pub use upstream::{Backend, Events, Upstream};
