//! Encodes an error in the format of Ollama's API: a text. The status is added as a field, because an error
//! inside a stream has no HTTP status.

use ir::Error;
use serde_json::{Value, json};

use crate::error_body::status_of;

pub fn encode(error: &Error) -> Value {
    json!({"error": error.message, "status_code": status_of(error)})
}
