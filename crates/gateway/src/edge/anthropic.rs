//! What Anthropic's clients call to talk to a model.

use axum::body::Body;
use axum::extract::State;
use axum::http::{Extensions, HeaderMap};
use axum::response::Response;
use ir::Dialect;
use serde_json::json;

use super::chat::chat;
use super::failure::Failure;
use super::openai::{question, wishes};
use super::vendor::Vendor;
use crate::operation::{Operation, any_of_type, object, text};
use crate::state::Gateway;

pub(super) fn operations() -> Vec<Operation> {
    let body = || {
        let messages = json!({"type": "array", "items": {"type": "object"}});
        question("messages", &messages)
    };
    let messages = Operation::post("/v1/messages", "messages", messages)
        .says("Anthropic's messages, whole or streamed, by any back-end or `module:NAME`.")
        .takes(body())
        .speaks(Vendor::Anthropic)
        .gives_answer(object(&[
            ("id", text()),
            ("type", json!({"const": "message"})),
            ("role", json!({"const": "assistant"})),
            ("content", any_of_type("array", "Blocks.")),
        ]));
    vec![wishes(messages)]
}

async fn messages(
    State(gateway): State<Gateway>,
    headers: HeaderMap,
    extensions: Extensions,
    body: Body,
) -> Result<Response, Failure> {
    chat(Dialect::Anthropic, &gateway, &headers, &extensions, body).await
}
