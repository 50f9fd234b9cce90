//! An error in the form that Ollama's clients read: a text. The status stands beside it, because an error
//! inside a stream has no other place for it.

use ir::Error;
use serde_json::{Value, json};

use crate::error_body::status_of;

pub fn encode(error: &Error) -> Value {
    json!({"error": error.message, "status_code": status_of(error)})
}
