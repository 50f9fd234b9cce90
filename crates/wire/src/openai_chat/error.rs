//! Encodes an error in the format of OpenAI's API.

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
        ErrorKind::Quota => "insufficient_quota",
        ErrorKind::RateLimited => "rate_limit_error",
        ErrorKind::Timeout => "timeout_error",
        _ => "server_error",
    };
    let code = match error.kind {
        ErrorKind::ContextWindow => "context_length_exceeded",
        ErrorKind::ContentPolicy => "content_policy_violation",
        _ => error.cognitive_code(),
    };
    let code = error.provider_code.as_deref().unwrap_or(code);
    json!({"error": {"message": error.message, "type": kind, "param": null, "code": code}})
}
