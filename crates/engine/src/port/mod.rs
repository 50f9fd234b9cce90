//! What a run needs from the outside, as small traits beside their caller. Adapters live in other
//! crates and must pass the suites of `testkit::conformance`.

mod archive;
mod clock;
mod fetch;
mod journal;
mod upstream;

pub use archive::{
    Archive, DAY_MS, Decision, Pruned, Retention, Review, RunFilter, RunSummary, Shown, Spent, UsageFilter,
    UsageLine, Verdict,
};
pub use clock::Clock;
pub use fetch::{Fetch, FetchError, Fetched, Hosts};
pub use journal::{
    Booking, End, Entry, Finish, Journal, JournalError, Kind, Named, NewRun, Once, Rendered, RunRow, State,
};
pub use upstream::{Answer, Backend, Events, Piece, Pieces, Said, Upstream, Verbatim};
