//! One run, from request to terminal event. `machine` is the pure state machine and `task` its IO driver;
//! `broadcast` is the in-memory fan-out to readers; `subscription` reads a run, from its start or a resume
//! point.

mod broadcast;
mod command;
mod failure;
pub mod machine;
mod mirror;
mod preface;
mod progress_meter;
mod record;
mod recovery;
mod render;
mod sink;
mod subscription;
mod task;
mod trace_store;

pub use command::{OnDisconnect, RunMode, RunOptions, RunRequest, StartedRun, Warning};
pub use preface::Preface;
pub use progress_meter::{GenerationProgress, ProgressMeter};
pub use record::{AttemptError, AttemptOutcome, AttemptRecord, AttemptRole, Trace};
pub use render::envelope;
pub use subscription::{ReadFrom, ResumePoint, Subscription};
pub use trace_store::TraceSink;

pub(crate) use broadcast::RunBroadcast;
pub(crate) use command::StoredCommand;
pub(crate) use mirror::MirrorTasks;
pub(crate) use preface::Opening;
pub(crate) use record::context;
pub(crate) use recovery::{RecoveredRun, failed_chunk, interrupted_chunk, replay};
pub(crate) use render::encode;
pub(crate) use sink::{JournalSink, RunSink, StepEnd};
pub(crate) use subscription::RunSource;
pub(crate) use task::RunTask;
pub(crate) use trace_store::TraceStore;
