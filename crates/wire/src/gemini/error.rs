//! An error in the form that Gemini's clients read.

use ir::{Error, ErrorKind};
use serde_json::{Value, json};

use crate::error_body::status_of;

pub fn encode(error: &Error) -> Value {
    let word = match error.kind {
        ErrorKind::InvalidRequest
        | ErrorKind::ContextWindow
        | ErrorKind::ContentPolicy
        | ErrorKind::Unsupported => "INVALID_ARGUMENT",
        ErrorKind::Auth => "UNAUTHENTICATED",
        ErrorKind::Quota | ErrorKind::RateLimited => "RESOURCE_EXHAUSTED",
        ErrorKind::Timeout => "DEADLINE_EXCEEDED",
        ErrorKind::Network | ErrorKind::NoCandidate | ErrorKind::NotEnabled => "UNAVAILABLE",
        _ => "INTERNAL",
    };
    json!({"error": {"code": status_of(error), "message": error.message, "status": word}})
}
