//! What OpenAI's clients call to talk to a model.

use axum::extract::{Request, State};
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
        .summary("OpenAI's chat completions, whole or streamed, by any back-end or `module:NAME`.")
        .request_body(request_schema(
            "messages",
            &json!({"type": "array", "items": {"type": "object"}}),
        ))
        .vendor(Vendor::OpenAi)
        .returns_json_or_stream(object(&[
            ("id", text()),
            ("object", json!({"const": "chat.completion"})),
            ("model", text()),
            ("choices", any_of_type("array", "One, usually.")),
        ]));
    let responses = Endpoint::post("/v1/responses", "responses", responses)
        .summary("OpenAI's responses, whole or streamed. Nothing is kept: `previous_response_id` is refused.")
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

/// The body of a question; all that the vendor knows is taken.
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
                "description": "What only this server knows; it never reaches a back-end.",
                "properties": {
                    "validate": {"enum": ["off", "check", "repair"]},
                    "degradation": {"enum": ["strict", "warn", "allow"]}
                }
            }
        }
    })
}

/// The headers that every question may carry.
pub(super) fn extension_headers(operation: Endpoint) -> Endpoint {
    operation
        .header(
            "X-Cogn-Validate",
            "Whether the answer is held to the JSON Schema of the request by this server.",
            crate::endpoint::one_of(&["off", "check", "repair"]),
        )
        .header(
            "X-Cogn-Degradation",
            "Whether a back-end that lacks what is asked for may answer as well as it can, and say so.",
            crate::endpoint::one_of(&["strict", "warn", "allow"]),
        )
        .header(
            "X-Cogn-Resumable",
            "1 gives each event of a stream an id, and keeps the stream for a caller who loses it.",
            crate::endpoint::one_of(&["0", "1"]),
        )
        .header(
            "Last-Event-ID",
            "The id of the last event that was received: the answer is the rest of that stream.",
            text(),
        )
        .header(
            "Idempotency-Key",
            "For `module:NAME`: a name for this request; sent again within a day, it gets the same run's answer.",
            text(),
        )
}

async fn completions(State(gateway): State<Gateway>, request: Request) -> Result<Response, VendorError> {
    chat(Dialect::OpenaiChat, &gateway, request).await
}

async fn responses(State(gateway): State<Gateway>, request: Request) -> Result<Response, VendorError> {
    chat(Dialect::OpenaiResponses, &gateway, request).await
}
