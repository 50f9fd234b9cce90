//! The vendors' edges: clients of OpenAI and Anthropic talk to this server as if it were theirs. A path
//! decides the dialect; the same few steps then serve all of them. Nothing here knows a back-end, and no
//! vendor's word is written here that `wire` could write.

mod admission;
mod anthropic;
mod canonical;
mod chat;
mod error;
mod multipart;
mod holed;
mod vendor_request;
mod list_models;
mod module_input;
mod module_model;
mod module_stream;
mod openai;
mod image_output;
mod chat_call;
mod call_metadata;
mod resumable;
mod schema_check;
mod unsupported_state;
mod stream;
mod target;
mod openai_unary;
mod count_tokens;
mod vendor;
mod response_encoder;
mod unary;
mod extensions;

use crate::endpoint::Endpoint;

pub(crate) use error::translate;
pub(crate) use vendor::Vendor;

pub(crate) fn operations() -> Vec<Endpoint> {
    [
        openai::operations(),
        anthropic::operations(),
        list_models::operations(),
        openai_unary::operations(),
        canonical::operations(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
