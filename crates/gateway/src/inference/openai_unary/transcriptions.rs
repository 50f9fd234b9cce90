//! Audio transcription in the OpenAI API, as JSON, text or subtitles.

use axum::Json;
use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use ir::envelope::TranscriptionResponse;
use ir::{
    Component, Degradation, Dialect, Error, ErrorKind, Feature, Ledger, MediaKind, Payload, Phase, Request,
    ResponsePayload,
};
use serde_json::{Value, json};
use wire::openai_transcriptions;
use wire::subtitles::Subtitles;

use super::{UnaryCall, with_metadata, wrong_payload};
use crate::endpoint::Endpoint;
use crate::inference::error::VendorError;
use crate::inference::multipart::MultipartForm;
use crate::inference::vendor::Vendor;

const FILE: &[&str] = &["file"];

pub(super) fn operations() -> Vec<Endpoint> {
    let transcribe = Endpoint::post("/v1/audio/transcriptions", "create_transcription", transcribe)
        .summary("Transcribes a recording, in the OpenAI format; multipart form with a file.")
        .multipart_body(json!({
            "type": "object",
            "properties": {
                "file": {"type": "string", "contentMediaType": "application/octet-stream"},
                "model": {"type": "string"},
                "language": {"type": "string"},
                "prompt": {"type": "string"},
                "response_format": {"enum": ["json", "text", "srt", "verbose_json", "vtt"]},
                "temperature": {"type": "number"},
                "timestamp_granularities[]": {"type": "array", "items": {"enum": ["word", "segment"]}},
            },
            "required": ["file"],
        }))
        .vendor(Vendor::OpenAi)
        .returns_one_of(&[
            "application/json",
            "text/plain",
            "application/x-subrip",
            "text/vtt",
            "text/event-stream",
        ]);
    vec![transcribe]
}

/// The requested format of a transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TranscriptFormat {
    Json,
    Verbose,
    Text,
    Subtitles(Subtitles),
    /// A stream of events, with the complete text in one delta.
    Events,
}

impl TranscriptFormat {
    fn of(form: &MultipartForm) -> Result<Self, VendorError> {
        let field = |key: &str| form.fields.get(key).and_then(Value::as_str);
        if field("stream") == Some("true") {
            return Ok(Self::Events);
        }
        match field("response_format").unwrap_or("json") {
            "json" => Ok(Self::Json),
            "verbose_json" => Ok(Self::Verbose),
            "text" => Ok(Self::Text),
            word => {
                let known = Subtitles::from_word(word).map(Self::Subtitles);
                known.ok_or_else(|| {
                    let message = format!(
                        "`response_format` {word} is not supported: json, text, srt, verbose_json, vtt"
                    );
                    VendorError::invalid(message)
                })
            }
        }
    }
}

async fn transcribe(asking: UnaryCall, body: Body) -> Result<Response, VendorError> {
    let mut form = asking.form(body, FILE).await?;
    form.make_number("temperature")?;
    let wanted = TranscriptFormat::of(&form)?;
    let mut files = form.files(FILE);
    let audio = files.pop().filter(|_| files.is_empty());
    let audio = audio.ok_or_else(|| VendorError::invalid("send exactly one `file`"))?;
    let mut fields = std::mem::take(&mut form.fields);
    // The response is formatted here; back-ends are requested to return what all formats need.
    fields.shift_remove("response_format");
    fields.shift_remove("stream");
    fields.insert(String::from("file"), Value::from("data:;base64,"));
    let mut payload = openai_transcriptions::decode_request(Value::Object(fields))?;
    payload.audio = audio.with_kind(MediaKind::Audio);
    let mut request_needs_times = false;
    match wanted {
        TranscriptFormat::Verbose => payload.timestamps = Some(true),
        TranscriptFormat::Subtitles(_) => {
            payload.timestamps = Some(true);
            request_needs_times = true;
        }
        TranscriptFormat::Json | TranscriptFormat::Text | TranscriptFormat::Events => {}
    }
    let mut request = Request::new("", Payload::Transcription(Box::new(payload)));
    if request_needs_times {
        request
            .degradation_overrides
            .insert(Feature::Timestamps, Degradation::Strict);
    }
    let relayed = asking.execute_request(request).await;
    // The form holds its permit until the response is received.
    drop(form);
    let relayed = relayed?;
    let ResponsePayload::Transcription(transcript) = &relayed.answer.payload else {
        return Err(wrong_payload());
    };
    let response = render(transcript, wanted)?;
    Ok(with_metadata(response, &relayed))
}

fn render(transcript: &TranscriptionResponse, wanted: TranscriptFormat) -> Result<Response, VendorError> {
    Ok(match wanted {
        TranscriptFormat::Json | TranscriptFormat::Verbose => {
            let mut ledger = Ledger::new(Component::Adapter);
            let mut body = openai_transcriptions::encode_response(transcript, &mut ledger);
            if wanted == TranscriptFormat::Verbose {
                body["task"] = json!("transcribe");
            }
            Json(body).into_response()
        }
        TranscriptFormat::Text => {
            let body = format!("{}\n", transcript.text);
            ([(CONTENT_TYPE, "text/plain; charset=utf-8")], body).into_response()
        }
        TranscriptFormat::Subtitles(form) => {
            let text = form.write(transcript).ok_or_else(|| {
                let message = "the back-end returned no timestamps, which subtitles require";
                Error::new(ErrorKind::Unsupported, Phase::MidStream, message)
            })?;
            ([(CONTENT_TYPE, form.content_type())], text).into_response()
        }
        TranscriptFormat::Events => {
            let usage = transcript.usage.as_ref();
            let usage = usage.and_then(|usage| usage.raw_in(Dialect::OpenaiTranscriptions));
            let mut done = json!({"type": "transcript.text.done", "text": transcript.text});
            if let Some(usage) = usage {
                done["usage"] = usage.clone();
            }
            let delta = json!({"type": "transcript.text.delta", "delta": transcript.text});
            let body = format!("data: {delta}\n\ndata: {done}\n\ndata: [DONE]\n\n");
            ([(CONTENT_TYPE, "text/event-stream")], body).into_response()
        }
    })
}
