//! OpenAI chat completions, and the many servers that implement it with additions.
//! <https://platform.openai.com/docs/api-reference/chat>

mod content;
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

pub(crate) use content::{cache_control, cache_hint, decode_part};
pub use error::encode as encode_error;
pub use request_decode::decode as decode_request;
pub(crate) use request_decode::schema_format;
pub use request_encode::{ask_for_usage, continue_last_message, encode as encode_request};
pub(crate) use response::book_warnings;
pub use response::{decode as decode_response, encode as encode_response};
pub(crate) use stream_decode::StreamDecoder;
pub(crate) use stream_encode::StreamEncoder;

const OWN: Dialect = Dialect::OpenaiChat;
