//! Back-ends that execute canonical requests, one file or folder each. They are independent of each other.
//! This crate must not depend on modules, or on how responses are stored or served.

pub mod anthropic;
pub mod command;
pub mod fetch;
pub mod gemini;
pub mod http;
pub mod key_set;
pub mod limits;
pub mod ollama;
pub mod openai;
pub mod rate_limited;
pub mod recording;
mod redaction;
pub mod scripted;
mod spill_error;

pub use anthropic::anthropic;
pub use command::{CommandOptions, CommandUpstream};
pub use fetch::GuardedFetch;
pub use gemini::gemini;
pub use http::{Client, ClientOptions, HttpOptions, HttpUpstream, Proxy, Timeouts};
pub use key_set::KeySetUrl;
pub use ollama::ollama;
pub use openai::openai;
pub use rate_limited::{RateLimited, RequestWindow};
pub use recording::{Recorder, Replay};
pub use redaction::redact;
pub use scripted::ScriptedUpstream;
