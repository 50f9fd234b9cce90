//! OpenAI's Responses: an answer is a list of items, and so is what is asked.
//! <https://platform.openai.com/docs/api-reference/responses>

mod content;
mod item_in;
mod item_out;
mod request_in;
mod request_out;
mod response;
mod server_form;
mod stream_in;
mod stream_out;

use ir::Dialect;

pub use request_in::decode as decode_request;
pub use request_out::encode as encode_request;
pub use response::{decode as decode_response, encode as encode_response};
pub use server_form::complete;
pub(crate) use stream_in::Reader;
pub(crate) use stream_out::Writer;

const OWN: Dialect = Dialect::OpenaiResponses;
