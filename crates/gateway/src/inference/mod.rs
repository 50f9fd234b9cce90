//! The vendor APIs: clients of OpenAI and Anthropic use this server in place of the vendor. The path selects
//! the dialect; the same steps serve all of them. Nothing here knows a back-end, and all vendor formats are
//! encoded by `wire`.

mod admission;
mod anthropic;
mod call_metadata;
mod canonical;
mod chat;
mod chat_call;
mod count_tokens;
mod error;
mod extensions;
mod form_body;
mod image_output;
mod list_models;
mod module_input;
mod module_model;
mod module_stream;
mod multipart;
mod openai;
mod openai_unary;
mod response_encoder;
mod resumable;
mod schema_check;
mod stream;
mod streamed_json;
mod target;
mod unary;
mod unsupported_state;
mod vendor;
mod vendor_request;

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
