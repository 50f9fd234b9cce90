//! Gemini's generateContent and streamGenerateContent. The model and the stream flag are part of the URL and
//! not of the body; the ledger records this.
//! <https://ai.google.dev/api/generate-content>

mod error;
mod field_case;
mod merge_text;
mod part_decode;
mod part_encode;
mod partial_args;
mod request_decode;
mod request_encode;
mod response;
mod schema;
mod stream_decode;
mod stream_encode;
mod usage;

use ir::Dialect;

pub use error::encode as encode_error;
pub use request_decode::decode as decode_request;
pub use request_encode::encode as encode_request;
pub use response::{decode as decode_response, encode as encode_response};
pub(crate) use stream_decode::StreamDecoder;
pub(crate) use stream_encode::StreamEncoder;

const OWN: Dialect = Dialect::Gemini;
