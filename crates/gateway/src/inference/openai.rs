//! Chat endpoints of the OpenAI API.

use axum::extract::Request;
use axum::response::Response;
use ir::Dialect;
use serde_json::{Value, json};

use super::chat::chat;
use super::error::VendorError;
use super::vendor::Vendor;
use crate::endpoint::{Endpoint, any_of_type, object, text};
use crate::state::Gateway;

pub(super) fn operations() -> Vec<Endpoint> {
    let chat = Endpoint::post("/v1/chat/completions", "chat_completions", completions)
        .summary("OpenAI chat completions, complete or streamed, from any back-end or `module:NAME`.")
        .request_body(request_schema(
            "messages",
            &json!({"type": "array", "items": {"type": "object"}}),
        ))
        .vendor(Vendor::OpenAi)
        .returns_json_or_stream(object(&[
            ("id", text()),
            ("object", json!({"const": "chat.completion"})),
            ("model", text()),
            ("choices", any_of_type("array", "Usually one.")),
        ]));
    let responses = Endpoint::post("/v1/responses", "responses", responses)
        .summary(
            "OpenAI responses, complete or streamed. Nothing is stored: `previous_response_id` is refused.",
        )
        .request_body(request_schema(
            "input",
            &json!({"type": ["string", "array"], "items": {"type": "object"}}),
        ))
        .vendor(Vendor::OpenAi)
        .returns_json_or_stream(object(&[
            ("id", text()),
            ("object", json!({"const": "response"})),
            ("model", text()),
            ("output", any_of_type("array", "Messages, calls and reasoning.")),
        ]));
    vec![chat, responses].into_iter().map(extension_headers).collect()
}

/// The schema of a request body; all fields of the vendor are accepted.
pub(super) fn request_schema(field: &str, schema: &Value) -> Value {
    json!({
        "type": "object",
        "required": ["model", field],
        "properties": {
            "model": {"type": "string", "minLength": 1},
            field: schema,
            "stream": {"type": "boolean"},
            "cogn": {
                "type": "object",
                "description": "Extensions of this server; never sent to a back-end.",
                "properties": {
                    "validate": {"enum": ["off", "check", "repair"]},
                    "degradation": {"enum": ["strict", "warn", "allow"]}
                }
            }
        }
    })
}

/// The headers of all chat endpoints.
pub(super) fn extension_headers(operation: Endpoint) -> Endpoint {
    operation
        .header(
            "X-Cogn-Validate",
            "Whether this server validates the answer against the JSON Schema of the request.",
            crate::endpoint::one_of(&["off", "check", "repair"]),
        )
        .header(
            "X-Cogn-Degradation",
            "Whether a back-end without a requested feature may be used, with a warning.",
            crate::endpoint::one_of(&["strict", "warn", "allow"]),
        )
        .header(
            "X-Cogn-Resumable",
            "1 gives each event of a stream an id and makes the stream resumable.",
            crate::endpoint::one_of(&["0", "1"]),
        )
        .header(
            "Last-Event-ID",
            "The id of the last received event: resumes that stream.",
            text(),
        )
        .header(
            "Idempotency-Key",
            "For `module:NAME`: a request key; repeated within a day, it returns the response of the same run.",
            text(),
        )
}

async fn completions(gateway: Gateway, request: Request) -> Result<Response, VendorError> {
    chat(Dialect::OpenaiChat, &gateway, request).await
}

async fn responses(gateway: Gateway, request: Request) -> Result<Response, VendorError> {
    chat(Dialect::OpenaiResponses, &gateway, request).await
}
