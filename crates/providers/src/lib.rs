//! Back-ends that answer canonical requests, one file or folder each. Adding one touches nothing else.
//! This crate must not know what a module is, nor how answers are stored or served.

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
pub mod scripted;
mod spill_error;

pub use anthropic::anthropic;
pub use command::{CommandUpstream, CommandOptions};
pub use fetch::GuardedFetch;
pub use gemini::gemini;
pub use http::{Client, ClientOptions, HttpUpstream, HttpOptions, Proxy, Timeouts};
pub use key_set::KeySetUrl;
pub use ollama::ollama;
pub use openai::openai;
pub use rate_limited::{RequestWindow, RateLimited};
pub use recording::{Recorder, Replay};
pub use scripted::ScriptedUpstream;
