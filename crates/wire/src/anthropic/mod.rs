//! Anthropic's Messages.
//! <https://docs.anthropic.com/en/api/messages>

mod block_in;
mod block_out;
mod error;
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

const OWN: Dialect = Dialect::Anthropic;
