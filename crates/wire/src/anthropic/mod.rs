//! Anthropic's Messages.
//! <https://docs.anthropic.com/en/api/messages>

mod block_decode;
mod block_encode;
mod error;
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

const OWN: Dialect = Dialect::Anthropic;
