//! What a run needs from the outside, as small traits beside their caller. Adapters live in other
//! crates and must pass the suites of `testkit::conformance`.

mod archive;
mod clock;
mod fetch;
mod journal;
mod upstream;

pub use archive::{
    Archive, DAY_MS, ReviewOutcome, PruneResult, PruneRequest, Review, RunFilter, RunSummary, RunStatus, AttemptUsage, UsageFilter,
    UsageRow, ReviewDecision,
};
pub use clock::Clock;
pub use fetch::{Fetch, FetchError, Fetched, Hosts};
pub use journal::{
    LifecycleRecord, RunEnd, JournalEntry, RunOutcome, Journal, JournalError, EventKind, IdempotencyMatch, NewRun, IdempotencyClaim, EncodedEvent, RunRecord, RunState,
};
pub use upstream::{UnaryResponse, Backend, EventStream, RawChunk, RawStream, RawItem, Upstream, RawRequest};
