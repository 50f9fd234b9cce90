//! The envelope: the only form in which an answer leaves this system. `ok` with `meta` and `data`, or
//! not `ok` with `meta` and `error`. Keys that begin with `_` are annotations of the transport; they
//! stand beside the envelope and are not part of the contract.
//!
//! [`check_reply`] is the machine that makes one out of whatever a model wrote: find the object (`reply`),
//! take it apart or wrap it (`wrap`), repair its meta and nothing else (`repair`), hold it against the
//! module's schema, limits and tier, and answer with an envelope that is valid in every case.

mod check;
mod confidence;
mod error;
mod runtime_meta;
mod failure;
mod tier_rules;
mod input;
mod small_map;
mod meta;
mod overflow;
mod render;
mod repair;
mod repair_log;
mod reply;
mod risk;
mod salvage;
mod structure;
mod unreadable;
mod schema_errors;
mod wrap;

use serde_json::{Map, Value};

pub use check::{Outcome, ReplyForm, check_envelope, check_object, check_reply};
pub use error::ErrorBody;
pub use runtime_meta::{CheckOptions, RuntimeMeta};
pub use input::check_input;
pub use meta::{Meta, Risk};
pub use structure::{Profile, ShapeViolation, check_structure};

pub(crate) use schema_errors::check_part;

/// A finished answer. `body` decides which of the two shapes it has, so a mixture cannot be built.
#[derive(Clone, Debug, PartialEq)]
pub struct Envelope {
    pub meta: Meta,
    pub body: EnvelopeBody,
    /// `_warnings`, `_usage` and the like, keys with their underscore.
    pub annotations: Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum EnvelopeBody {
    Success {
        data: Map<String, Value>,
    },
    Failure {
        error: Box<ErrorBody>,
        partial_data: Option<Map<String, Value>>,
    },
}

impl Envelope {
    pub fn is_ok(&self) -> bool {
        matches!(self.body, EnvelopeBody::Success { .. })
    }

    pub fn data(&self) -> Option<&Map<String, Value>> {
        match &self.body {
            EnvelopeBody::Success { data } => Some(data),
            EnvelopeBody::Failure { .. } => None,
        }
    }

    pub fn error(&self) -> Option<&ErrorBody> {
        match &self.body {
            EnvelopeBody::Success { .. } => None,
            EnvelopeBody::Failure { error, .. } => Some(error),
        }
    }
}
