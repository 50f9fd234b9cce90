//! OpenAI's Responses: the input and the output are lists of items.
//! <https://platform.openai.com/docs/api-reference/responses>

mod content;
mod item_decode;
mod item_encode;
mod request_decode;
mod request_encode;
mod response;
mod response_defaults;
mod stream_decode;
mod stream_encode;

use ir::Dialect;

pub use request_decode::decode as decode_request;
pub use request_encode::encode as encode_request;
pub use response::{decode as decode_response, encode as encode_response};
pub use response_defaults::complete;
pub(crate) use stream_decode::StreamDecoder;
pub(crate) use stream_encode::StreamEncoder;

const OWN: Dialect = Dialect::OpenaiResponses;
