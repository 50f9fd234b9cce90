//! Speech synthesis in the OpenAI API.

use axum::body::Body;
use axum::http::HeaderValue;
use axum::response::Response;
use ir::{Component, Dialect, Ledger, Payload, ResponsePayload};
use serde_json::json;
use spill::BodySegment;
use wire::openai_speech::{self, AudioBytes};

use super::{UnaryCall, with_metadata, wrong_payload};
use crate::endpoint::Endpoint;
use crate::inference::error::VendorError;
use crate::inference::streamed_json;
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
    let sound = match sound {
        AudioBytes::Inline(bytes) => BodySegment::Bytes(bytes.into()),
        AudioBytes::Handle(media) => BodySegment::Raw(media),
    };
    let response = streamed_json::streamed(sound.into(), mime);
    Ok(with_metadata(response, &relayed))
}
