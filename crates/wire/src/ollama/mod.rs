//! Ollama's chat. Streams are lines of JSON; generation parameters are under `options`, with Ollama's names.
//! <https://docs.ollama.com/api/chat>

mod error;
mod message_decode;
mod message_encode;
mod request_decode;
mod request_encode;
mod response;
mod stream_decode;
mod stream_encode;
pub(crate) mod usage;

use ir::Dialect;

pub use error::encode as encode_error;
pub use request_decode::decode as decode_request;
pub use request_encode::encode as encode_request;
pub use response::{decode as decode_response, encode as encode_response};
pub(crate) use stream_decode::StreamDecoder;
pub(crate) use stream_encode::StreamEncoder;

const OWN: Dialect = Dialect::Ollama;
