//! The vendors' edges: clients of OpenAI and Anthropic talk to this server as if it were theirs. A path
//! decides the dialect; the same few steps then serve all of them. Nothing here knows a back-end, and no
//! vendor's word is written here that `wire` could write.

mod admit;
mod anthropic;
mod canonical;
mod chat;
mod failure;
mod form;
mod holed;
mod letter;
mod models;
mod module_input;
mod module_model;
mod module_stream;
mod openai;
mod picture;
mod question;
mod receipt;
mod resumable;
mod schema_check;
mod stateless;
mod stream;
mod target;
mod task;
mod tokens;
mod vendor;
mod voice;
mod whole;
mod wish;

use crate::operation::Operation;

pub(crate) use failure::translate;
pub(crate) use vendor::Vendor;

pub(crate) fn operations() -> Vec<Operation> {
    [
        openai::operations(),
        anthropic::operations(),
        models::operations(),
        task::operations(),
        canonical::operations(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
