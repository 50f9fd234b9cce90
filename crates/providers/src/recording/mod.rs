//! What was asked and what was answered, kept in the form of a script: a recording wraps any back-end and
//! writes down its answers, a replay gives them again without anybody being asked. A request is known by
//! its fingerprint, so a replay never answers another question than the one that was recorded; it says what
//! has changed instead.

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
