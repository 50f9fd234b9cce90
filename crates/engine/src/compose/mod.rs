//! Composed runs: the steps of a module's composition are run before its own model is asked, each as a run
//! of its own inside this one. Dropping the preparation drops every step, and with it every call under way.
//! Which step may start when is decided in `module::compose`; here they are carried out.

mod child;
mod annotations;
mod silent;
mod steps;

pub(crate) use steps::{CompositionSpec, CompositionStream};

use ir::Request;
use module::compose::Outcome;
use serde_json::{Map, Value};
use std::sync::Arc;

use crate::run::AttemptRecord;

/// What a preparation says.
#[derive(Clone, Debug, PartialEq)]
pub enum CompositionEvent {
    /// Steps come and go.
    Step {
        ended: usize,
        of: usize,
        message: String,
    },
    Done(Box<CompositionResult>),
}

/// What the steps of a run have come to.
#[derive(Clone, Debug, PartialEq)]
pub struct CompositionResult {
    pub outcome: Outcome,
    /// Where the module's own model is to be asked.
    pub request: Option<Arc<Request>>,
    /// Entries of `_warnings`.
    pub warnings: Vec<Value>,
    /// Why a person has to look at what steps answered.
    pub review: Vec<String>,
    /// Context that steps have emitted and the module hands on.
    pub emitted: Map<String, Value>,
    /// `_usage` of each step, null where it is unknown.
    pub usage: Vec<Value>,
    /// Every call that the steps made, theirs included.
    pub attempts: Vec<AttemptRecord>,
}
