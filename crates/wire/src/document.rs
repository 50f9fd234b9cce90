//! Documents of any dialect and operation, converted through the canonical envelopes. Envelope fields outside
//! of the payload belong to the host; vendor dialects do not support them, so they are recorded as losses.

use ir::{Dialect, Error, Ledger, Operation, Outcome, Payload, Phase, Request, Response, ResponsePayload};
use serde_json::Value;

use crate::{chat, openai_embeddings, openai_images, openai_speech, openai_transcriptions};

pub fn decode_request(dialect: Dialect, body: Value) -> Result<Request, Error> {
    match dialect {
        Dialect::Canonical => {
            let request: Request =
                serde_json::from_value(body).map_err(|why| Error::invalid_request(why.to_string()))?;
            request.check()?;
            Ok(request)
        }
        Dialect::OpenaiEmbeddings => Ok(Request::new(
            "",
            Payload::Embeddings(openai_embeddings::decode_request(body)?),
        )),
        Dialect::OpenaiImages => Ok(Request::new(
            "",
            Payload::Image(Box::new(openai_images::decode_request(body)?)),
        )),
        Dialect::OpenaiTranscriptions => {
            let request = openai_transcriptions::decode_request(body)?;
            Ok(Request::new("", Payload::Transcription(Box::new(request))))
        }
        Dialect::OpenaiSpeech => Ok(Request::new(
            "",
            Payload::Speech(openai_speech::decode_request(body)?),
        )),
        _ => Ok(Request::chat("", chat::decode_request(dialect, body)?)),
    }
}

pub fn encode_request(dialect: Dialect, request: &Request, ledger: &mut Ledger) -> Result<Value, Error> {
    if dialect == Dialect::Canonical {
        return serde_json::to_value(request).map_err(|why| Error::invalid_request(why.to_string()));
    }
    book_envelope(request, dialect, ledger);
    match (&request.payload, dialect) {
        (Payload::Embeddings(payload), Dialect::OpenaiEmbeddings) => {
            Ok(openai_embeddings::encode_request(payload, ledger))
        }
        (Payload::Image(payload), Dialect::OpenaiImages) => openai_images::encode_request(payload, ledger),
        (Payload::Transcription(payload), Dialect::OpenaiTranscriptions) => {
            openai_transcriptions::encode_request(payload, ledger)
        }
        (Payload::Speech(payload), Dialect::OpenaiSpeech) => {
            Ok(openai_speech::encode_request(payload, ledger))
        }
        (Payload::Chat(payload), _) => chat::encode_request(dialect, payload, ledger),
        (other, _) => Err(unfit(dialect, other.operation())),
    }
}

/// Decodes a response. An error body, whatever its status, becomes the error of the envelope.
pub fn decode_response(dialect: Dialect, body: Value) -> Result<Response, Error> {
    if dialect == Dialect::Canonical {
        let bad = |why: serde_json::Error| Error::invalid_response(Phase::BeforeFirstByte, why.to_string());
        return serde_json::from_value(body).map_err(bad);
    }
    let (operation, payload) = match dialect {
        Dialect::OpenaiEmbeddings => (
            Operation::Embeddings,
            openai_embeddings::decode_response(body).map(ResponsePayload::Embeddings),
        ),
        Dialect::OpenaiImages => (
            Operation::ImageGeneration,
            openai_images::decode_response(body).map(ResponsePayload::Image),
        ),
        Dialect::OpenaiTranscriptions => (
            Operation::SpeechToText,
            openai_transcriptions::decode_response(body).map(ResponsePayload::Transcription),
        ),
        _ => (
            Operation::ChatCompletions,
            chat::decode_response(dialect, body).map(|chat| ResponsePayload::Chat(Box::new(chat))),
        ),
    };
    Ok(match payload {
        Ok(payload) => Response::new("", payload),
        Err(error) => Response::failed("", operation, error),
    })
}

pub fn encode_response(dialect: Dialect, response: &Response, ledger: &mut Ledger) -> Result<Value, Error> {
    if dialect == Dialect::Canonical {
        let bad = |why: serde_json::Error| Error::invalid_response(Phase::BeforeFirstByte, why.to_string());
        return serde_json::to_value(response).map_err(bad);
    }
    let payload = match &response.result {
        Outcome::Error(error) => return Ok(chat::encode_error(dialect, error)),
        Outcome::Payload(payload) => payload,
    };
    match (payload.as_ref(), dialect) {
        (ResponsePayload::Embeddings(payload), Dialect::OpenaiEmbeddings) => {
            Ok(openai_embeddings::encode_response(payload, ledger))
        }
        (ResponsePayload::Image(payload), Dialect::OpenaiImages) => {
            openai_images::encode_response(payload, ledger)
        }
        (ResponsePayload::Transcription(payload), Dialect::OpenaiTranscriptions) => {
            Ok(openai_transcriptions::encode_response(payload, ledger))
        }
        (ResponsePayload::Chat(payload), _) => chat::encode_response(dialect, payload, ledger),
        (other, _) => Err(unfit(dialect, other.operation())),
    }
}

fn unfit(dialect: Dialect, operation: Operation) -> Error {
    Error::invalid_request(format!("{dialect} does not support {}", operation.as_str()))
}

fn book_envelope(request: &Request, target: Dialect, ledger: &mut Ledger) {
    let said = [
        ("task_id", request.task_id.is_some()),
        ("meta", !request.meta.is_empty()),
        ("routing", !request.routing.is_empty()),
        ("requirements", !request.requirements.is_empty()),
        ("policy", request.policy.is_some()),
        ("timeout_ms", request.timeout_ms.is_some()),
        ("degradation", request.degradation.is_some()),
        ("degradation_overrides", !request.degradation_overrides.is_empty()),
        ("patches", !request.patches.is_empty()),
        ("extra", !request.extra.is_empty()),
    ];
    let unnamed = request.rest.keys().map(String::as_str);
    for key in said
        .iter()
        .filter(|(_, there)| *there)
        .map(|(key, _)| *key)
        .chain(unnamed)
    {
        let key = ir::adaptation::escape(key);
        ledger.dropped(
            format!("/{key}"),
            format!("host-only field, not supported by {target}"),
        );
    }
}
