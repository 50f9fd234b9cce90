//! Endpoints of the Anthropic API.

use axum::body::Body;
use axum::extract::Request;
use axum::http::{Extensions, HeaderMap};
use axum::response::Response;
use ir::Dialect;
use serde_json::json;

use super::chat::chat;
use super::count_tokens::count;
use super::error::VendorError;
use super::openai::{extension_headers, request_schema};
use super::vendor::Vendor;
use crate::endpoint::{Endpoint, any_of_type, object, text};
use crate::state::Gateway;

pub(super) fn operations() -> Vec<Endpoint> {
    let body = || {
        let messages = json!({"type": "array", "items": {"type": "object"}});
        request_schema("messages", &messages)
    };
    let messages = Endpoint::post("/v1/messages", "messages", messages)
        .summary("Anthropic messages, complete or streamed, from any back-end or `module:NAME`.")
        .request_body(body())
        .vendor(Vendor::Anthropic)
        .returns_json_or_stream(object(&[
            ("id", text()),
            ("type", json!({"const": "message"})),
            ("role", json!({"const": "assistant"})),
            ("content", any_of_type("array", "Content blocks.")),
        ]));
    let tokens = Endpoint::post("/v1/messages/count_tokens", "count_tokens", count_tokens)
        .summary("Counts the tokens of a request; an estimate is marked as such under `cogn`.")
        .request_body(body())
        .vendor(Vendor::Anthropic)
        .returns_json(object(&[(
            "input_tokens",
            json!({"type": "integer", "minimum": 0}),
        )]));
    vec![extension_headers(messages), tokens]
}

async fn messages(gateway: Gateway, request: Request) -> Result<Response, VendorError> {
    chat(Dialect::Anthropic, &gateway, request).await
}

async fn count_tokens(
    gateway: Gateway,
    headers: HeaderMap,
    extensions: Extensions,
    body: Body,
) -> Result<Response, VendorError> {
    count(&gateway, &headers, &extensions, body).await
}
