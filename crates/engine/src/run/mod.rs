//! One run, from command to last event. `machine` decides, purely; `task` carries out what it decides;
//! `live` holds what readers of a running run need; `subscription` is how anyone reads, first time or
//! again.

mod command;
mod recovery;
mod broadcast;
pub mod machine;
mod preface;
mod record;
mod render;
mod mirror;
mod subscription;
mod task;
mod trace_store;
mod failure;

pub use command::{RunRequest, RunMode, OnDisconnect, RunOptions, Warning};
pub use preface::Preface;
pub use record::{AttemptError, AttemptRecord, AttemptOutcome, AttemptRole, Trace};
pub use render::{envelope, envelope_text};
pub use subscription::{ReadFrom, ResumePoint, Subscription};
pub use trace_store::TraceSink;

pub(crate) use command::{StoredCommand, warnings_annotation};
pub(crate) use recovery::{RecoveredRun, replay, interrupted_chunk};
pub(crate) use broadcast::RunBroadcast;
pub(crate) use preface::Opening;
pub(crate) use record::context;
pub(crate) use render::encode;
pub(crate) use mirror::MirrorTasks;
pub(crate) use subscription::RunSource;
pub(crate) use task::RunTask;
pub(crate) use trace_store::TraceStore;
