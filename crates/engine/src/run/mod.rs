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

pub use command::{Execute, Mode, OnDisconnect, Options, Warning};
pub use preface::Preface;
pub use record::{AttemptError, AttemptRecord, Outcome, Role, Trace};
pub use render::{envelope, envelope_text};
pub use subscription::{From, Place, Subscription};
pub use trace_store::Witness;

pub(crate) use command::{Command, annotate};
pub(crate) use recovery::{Inherited, inherit, interruption};
pub(crate) use broadcast::Live;
pub(crate) use preface::Opening;
pub(crate) use record::context;
pub(crate) use render::render;
pub(crate) use mirror::Shadows;
pub(crate) use subscription::Source;
pub(crate) use task::Task;
pub(crate) use trace_store::Traces;
