//! Encodes an error in the format of Anthropic's API.

use ir::{Error, ErrorKind};
use serde_json::{Value, json};

pub fn encode(error: &Error) -> Value {
    let kind = match error.kind {
        ErrorKind::InvalidRequest
        | ErrorKind::ModelRequired
        | ErrorKind::ContextWindow
        | ErrorKind::ContentPolicy
        | ErrorKind::Unsupported => "invalid_request_error",
        ErrorKind::Auth => "authentication_error",
        ErrorKind::Quota => "billing_error",
        ErrorKind::RateLimited => "rate_limit_error",
        ErrorKind::Timeout => "timeout_error",
        _ => "api_error",
    };
    json!({"type": "error", "error": {"type": kind, "message": error.message}})
}
