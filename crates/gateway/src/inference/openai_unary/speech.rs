//! Speech synthesis in the OpenAI API.

use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use engine::media::bytes_of;
use ir::{Component, Dialect, Ledger, Payload, ResponsePayload};
use serde_json::json;
use wire::openai_speech::{self, AudioBytes};

use super::{UnaryCall, with_metadata, wrong_payload};
use crate::endpoint::Endpoint;
use crate::inference::error::VendorError;
use crate::inference::vendor::Vendor;

pub(super) fn operations() -> Vec<Endpoint> {
    let synthesize = Endpoint::post("/v1/audio/speech", "create_speech", synthesize)
        .summary("Synthesizes speech from a text, in the OpenAI format: audio in the requested format.")
        .request_body(json!({
            "type": "object",
            "properties": {
                "model": {"type": "string"},
                "input": {"type": "string"},
                "voice": {},
                "response_format": {"type": "string"},
                "speed": {"type": "number"},
            },
            "required": ["input"],
        }))
        .vendor(Vendor::OpenAi)
        .returns_document("application/octet-stream");
    vec![synthesize]
}

async fn synthesize(asking: UnaryCall, body: Body) -> Result<Response, VendorError> {
    let body = asking.read(body).await?;
    let payload = openai_speech::decode_request(body)?;
    if payload.input.trim().is_empty() {
        return Err(VendorError::invalid("`input` is empty"));
    }
    if payload.ext.note(Dialect::OpenaiSpeech, "stream_format") == Some("sse") {
        let message = "speech events are not supported: omit `stream_format`";
        return Err(VendorError::invalid(message));
    }
    let relayed = asking.execute(Payload::Speech(payload)).await?;
    let ResponsePayload::Speech(speech) = &relayed.answer.payload else {
        return Err(wrong_payload());
    };
    let mut ledger = Ledger::new(Component::Adapter);
    let (sound, mime) = openai_speech::encode_audio(speech, &mut ledger)?;
    let mime = HeaderValue::from_str(&mime);
    let mime = mime.unwrap_or_else(|_| HeaderValue::from_static("application/octet-stream"));
    let (length, body) = match sound {
        AudioBytes::Here(bytes) => (bytes.len() as u64, Body::from(bytes)),
        AudioBytes::Held(held) => (held.size_bytes(), Body::from_stream(bytes_of(&held))),
    };
    let head = [(CONTENT_TYPE, mime), (CONTENT_LENGTH, HeaderValue::from(length))];
    let response = (head, body).into_response();
    Ok(with_metadata(response, &relayed))
}
