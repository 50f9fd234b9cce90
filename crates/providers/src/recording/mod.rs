//! Recording and replay of calls in the form of a script: a recording wraps any back-end and stores its
//! responses, a replay returns them without calling a back-end. Requests are matched by fingerprint, so a
//! replay never answers another request than the recorded one; it reports the differences instead.

mod fingerprint;
mod recorder;
mod redact;
mod replay;
#[cfg(test)]
mod tests;
mod yaml;

pub use fingerprint::Fingerprint;
pub use recorder::{RecordError, Recorder};
pub use replay::{Replay, UnmatchedRequest};
