//! Gemini's generateContent and streamGenerateContent. The model and the wish to stream stand in the
//! address and not in the body; the ledger says so.
//! <https://ai.google.dev/api/generate-content>

mod adjacent;
mod error;
mod part_in;
mod part_out;
mod partial;
mod request_in;
mod request_out;
mod response;
mod schema;
mod spelling;
mod stream_in;
mod stream_out;
mod usage;

use ir::Dialect;

pub use error::encode as encode_error;
pub use request_in::decode as decode_request;
pub use request_out::encode as encode_request;
pub use response::{decode as decode_response, encode as encode_response};
pub(crate) use stream_in::Reader;
pub(crate) use stream_out::Writer;

const OWN: Dialect = Dialect::Gemini;
