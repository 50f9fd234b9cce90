//! Ollama's chat. Streams are lines of JSON; the knobs of generation stand under `options`, by Ollama's
//! own names.
//! <https://docs.ollama.com/api/chat>

mod error;
mod message_in;
mod message_out;
mod request_in;
mod request_out;
mod response;
mod stream_in;
mod stream_out;
pub(crate) mod usage;

use ir::Dialect;

pub use error::encode as encode_error;
pub use request_in::decode as decode_request;
pub use request_out::encode as encode_request;
pub use response::{decode as decode_response, encode as encode_response};
pub(crate) use stream_in::Reader;
pub(crate) use stream_out::Writer;

const OWN: Dialect = Dialect::Ollama;
