//! Composed runs: the steps of a module's composition are executed before its own model is called, each as a
//! run inside this one. Dropping the composition cancels every step and its upstream calls. `module::compose`
//! decides which step may start when; this module executes them.

mod annotations;
mod child;
mod steps;

pub(crate) use steps::{CompositionSpec, CompositionStream};

use ir::Request;
use module::compose::Outcome;
use serde_json::{Map, Value};
use std::sync::Arc;

use crate::run::AttemptRecord;

/// An event of a composition.
#[derive(Clone, Debug, PartialEq)]
pub enum CompositionEvent {
    /// A step has started or ended.
    Step {
        ended: usize,
        of: usize,
        message: String,
    },
    Done(Box<CompositionResult>),
}

/// The result of the steps of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct CompositionResult {
    pub outcome: Outcome,
    /// Set if the module's own model is to be called.
    pub request: Option<Arc<Request>>,
    /// Entries of `_warnings`.
    pub warnings: Vec<Value>,
    /// The reasons for a review of the answers of steps.
    pub review: Vec<String>,
    /// Context that steps have emitted and the module passes on.
    pub emitted: Map<String, Value>,
    /// `_usage` of each step, null if unknown.
    pub usage: Vec<Value>,
    /// Every attempt of the steps, including those of nested steps.
    pub attempts: Vec<AttemptRecord>,
}
