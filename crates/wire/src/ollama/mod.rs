//! Ollama's chat: lines of JSON, arguments as values, knobs under their own names in `options`.
//! <https://github.com/ollama/ollama/blob/main/docs/api.md>

mod message_in;
mod message_out;
mod request_in;
mod request_out;
mod response;
mod stream;

use ir::{Dialect, Error};
use serde_json::{Value, json};

pub use request_in::decode as decode_request;
pub use request_out::encode as encode_request;
pub use response::{decode as decode_response, encode as encode_response};
pub(crate) use stream::{Reader, Writer};

const OWN: Dialect = Dialect::Ollama;

/// An error in the form that Ollama's clients read.
pub fn encode_error(error: &Error) -> Value {
    json!({"error": error.message, "status_code": crate::error_body::status_of(error)})
}
