//! The ports: small traits, defined next to their caller, for what a run needs from outside. Adapters are in
//! other crates and must pass the suites of `testkit::conformance`.

mod archive;
mod clock;
mod fetch;
mod journal;
mod upstream;

pub use archive::{
    Archive, AttemptUsage, DAY_MS, PruneRequest, PruneResult, Review, ReviewDecision, ReviewOutcome,
    RunFilter, RunStatus, RunSummary, UsageFilter, UsageRow,
};
pub use clock::Clock;
pub use fetch::{Fetch, FetchError, Fetched, Hosts};
pub use journal::{
    Account, Commit, EncodedEvent, EventKind, IdempotencyClaim, IdempotencyMatch, Journal, JournalEntry,
    JournalError, NewRun, RunEnd, RunKind, RunOutcome, RunRecord, RunState,
};
pub use upstream::{
    Backend, EventStream, EventUpstream, RawChunk, RawItem, RawRequest, RawStream, UnaryResponse, Upstream,
    unsupported_operation,
};
