//! Runs: an input and a module become a stream of numbered events that survives failures of clients,
//! back-ends and servers. A run is a pure state machine, driven by a thin task that calls the ports. This
//! crate must not know HTTP, SQL or any vendor; it calls them through [`port`].

pub mod admission;
mod attempts;
pub mod compose;
mod config;
pub mod engine;
pub mod error;
pub mod fleet;
pub mod gate;
mod launch;
pub mod limits;
pub mod media;
pub mod modules;
pub mod port;
mod preflight;
mod queries;
mod recovery;
pub mod relay;
mod request_schemas;
pub mod retention;
pub mod review;
pub mod route;
pub mod run;
mod runs;
mod schema_threads;
pub mod settings;
mod tokens;

pub use crate::admission::{Admission, Permit, Queue, Repeatable};
pub use crate::config::EngineConfig;
pub use crate::engine::{Engine, Ports};
pub use crate::error::Error;
pub use crate::fleet::{Fleet, Member};
pub use crate::media::{FetchRule, MediaPipeline, MediaSettings};
pub use crate::modules::Modules;
pub use crate::relay::{
    FrameEncoder, RelayFailure, RelayPart, RelayRequest, RelayResponse, RelayedUnary, ResumableResponse,
};
pub use crate::request_schemas::admit_schemas;
pub use crate::run::{ReadFrom, RunMode, RunRequest, StartedRun, Subscription};
pub use crate::schema_threads::SchemaThreads;
pub use crate::settings::Settings;
pub use crate::tokens::TokenCount;
pub use tenancy::Tenant;
