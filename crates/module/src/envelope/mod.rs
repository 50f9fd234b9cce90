//! The envelope: the final document of a run. `ok` with `meta` and `data`, or not `ok` with `meta` and
//! `error`. Keys that begin with `_` are transport annotations and not part of the contract.
//!
//! [`check_reply`] converts a model's reply to an envelope: find the object (`reply`), split or wrap it
//! (`wrap`), repair its meta only (`repair`), check it against the module's schema, limits and tier, and
//! return an envelope that is always valid.

mod check;
mod confidence;
mod copied_text;
mod error;
mod failure;
mod input;
mod meta;
mod overflow;
mod render;
mod repair;
mod repair_log;
mod reply;
mod risk;
mod runtime_meta;
mod salvage;
mod schema_errors;
mod small_map;
mod structure;
mod tier_rules;
mod unreadable;
mod wrap;

use serde_json::{Map, Value};

pub use check::{Outcome, ReplyForm, check_envelope, check_object, check_reply};
pub use error::ErrorBody;
pub use input::check_input;
pub use meta::{Meta, Risk};
pub use runtime_meta::{CheckOptions, RuntimeMeta};
pub use structure::{Profile, ShapeViolation, check_structure};

pub(crate) use copied_text::InstructionTexts;
pub(crate) use schema_errors::check_part;

/// A final envelope. `body` determines which of the two shapes it has, so mixed shapes cannot be built.
#[derive(Clone, Debug, PartialEq)]
pub struct Envelope {
    pub meta: Meta,
    pub body: EnvelopeBody,
    /// `_warnings`, `_usage` and similar keys, including their underscore.
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
