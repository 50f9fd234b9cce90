//! Runs: how an input and a module become a stream of numbered events that survives the death of
//! clients, back-ends and servers. A run is a pure state machine; around it stands a thin task that
//! talks to the ports. This crate must not know HTTP, SQL or any vendor; it calls them through
//! [`port`].

pub mod admission;
mod attempts;
pub mod compose;
mod crowd;
pub mod engine;
pub mod error;
pub mod fleet;
pub mod gate;
mod launch;
pub mod limits;
mod queries;
pub mod media;
pub mod modules;
mod preflight;
pub mod port;
pub mod relay;
pub mod retention;
pub mod review;
pub mod route;
pub mod run;
pub mod settings;
mod tokens;
mod interrupted;

pub use crate::admission::{Admission, Permit, Queue, Repeatable};
pub use crate::engine::{Engine, Ports};
pub use crate::error::Error;
pub use crate::fleet::{Fleet, Member};
pub use crate::media::{Depot, FetchRule, Intake, Keeping, MediaPipeline, MediaSettings, Shelf};
pub use crate::modules::Modules;
pub use crate::relay::{RelayedUnary, RelayPart, RelayRequest, RelayFailure, RelayResponse, FrameEncoder, ResumableResponse};
pub use crate::run::{RunRequest, ReadFrom, RunMode, Subscription};
pub use crate::settings::Settings;
pub use crate::tokens::TokenCount;
pub use tenancy::Tenant;
