//! Encodes an error in the format of Gemini's API.

use ir::{Error, ErrorKind};
use serde_json::{Value, json};

use crate::error_body::status_of;

pub fn encode(error: &Error) -> Value {
    let word = match error.kind {
        ErrorKind::InvalidRequest
        | ErrorKind::ModelRequired
        | ErrorKind::ContextWindow
        | ErrorKind::ContentPolicy
        | ErrorKind::Unsupported => "INVALID_ARGUMENT",
        ErrorKind::Auth => "UNAUTHENTICATED",
        ErrorKind::Quota | ErrorKind::RateLimited => "RESOURCE_EXHAUSTED",
        ErrorKind::Timeout => "DEADLINE_EXCEEDED",
        ErrorKind::Cancelled => "CANCELLED",
        ErrorKind::Network | ErrorKind::Upstream | ErrorKind::NoCandidate | ErrorKind::NotEnabled => {
            "UNAVAILABLE"
        }
        ErrorKind::InvalidResponse | ErrorKind::AnswerTooLarge | ErrorKind::Internal => "INTERNAL",
    };
    let mut inner = json!({"code": status_of(error), "message": error.message, "status": word});
    if let (Some(wait), Some(inner)) = (error.retry_after_ms, inner.as_object_mut()) {
        let delay = format!("{}.{:03}s", wait / 1000, wait % 1000);
        let info = json!([{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}]);
        inner.insert(String::from("details"), info);
    }
    json!({"error": inner})
}
