//! Decodes the response of a unary operation. Status and content type are checked before the body, and every
//! body is limited. Large images and audio are written to the spill store while they arrive.

use std::io::Write;
use std::time::Duration;

use engine::port::UnaryResponse;
use hyper::header::{CONTENT_TYPE, RETRY_AFTER};
use ir::adaptation::{Action, Component, Ledger};
use ir::envelope::{EmbeddingsRequest, EmbeddingsResponse};
use ir::{Dialect, Error, ErrorKind, Payload, Phase, ResponsePayload, Usage};
use serde_json::Value;
use spill::SpillStore;
use tokio::time::Instant;
use wire::{embeddings, error_body, openai_images, openai_speech, openai_transcriptions};

use super::super::body::{collect, copy_to};
use super::super::response::HttpResponse;
use super::super::transport_error;
use super::image_extractor::ImageExtractor;
use crate::limits::{ANSWER_BYTES_MAX, ERROR_BYTES_MAX, MEDIA_ANSWER_BYTES_MAX};
use crate::spill_error::unkept;

pub(super) struct UnaryReader<'a> {
    pub(super) dialect: Dialect,
    pub(super) idle: Duration,
    pub(super) deadline: Instant,
    pub(super) total: Duration,
    /// Whether the raw response is preserved.
    pub(super) raw: bool,
    pub(super) store: &'a SpillStore,
}

impl UnaryReader<'_> {
    pub(super) async fn read(&self, reply: HttpResponse, asked: &Payload) -> Result<UnaryResponse, Error> {
        if reply.status != 200 {
            return Err(self.refusal(reply).await);
        }
        let named = String::from(reply.header(&CONTENT_TYPE).unwrap_or_default());
        let kind = named.split(';').next().unwrap_or_default().trim().to_lowercase();
        let is_json = kind.is_empty() || kind == "application/json";
        if let Payload::Speech(speech) = asked
            && !is_json
        {
            if !kind.starts_with("audio/") && kind != "application/octet-stream" {
                return Err(transport_error::unexpected_content_type(&named));
            }
            let sound = self.pour(reply, self.store.run_spill().writer()).await?;
            if sound.size_bytes() == 0 {
                return Err(Error::invalid_response(Phase::MidStream, "the audio is empty"));
            }
            let sound = sound.finish().map_err(|error| unkept(&error))?;
            let sound = openai_speech::decode_audio(sound, Some(&kind), speech.format.as_deref());
            return Ok(answer(ResponsePayload::Speech(Box::new(sound)), None));
        }
        if !is_json {
            return Err(transport_error::unexpected_content_type(&named));
        }
        if let Payload::Image(_) = asked {
            return self.drawn(reply).await;
        }
        let value = parse(&self.gather(reply, ANSWER_BYTES_MAX).await?)?;
        let raw = self.raw.then(|| value.clone());
        let mut answer = self.decode(value, asked)?;
        answer.raw = raw;
        Ok(answer)
    }

    async fn drawn(&self, reply: HttpResponse) -> Result<UnaryResponse, Error> {
        let pictures = self.pour(reply, ImageExtractor::new(self.store)?).await?;
        let drawn = pictures.finish().map_err(|error| unkept(&error))?;
        let value = parse(&drawn.text)?;
        let mut raw = self.raw.then(|| value.clone());
        let mut response = openai_images::decode_response(value)?;
        drawn.place(&mut response)?;
        let usage = response.usage.clone();
        let mut answer = answer(ResponsePayload::Image(response), usage);
        if raw.as_mut().is_some_and(|raw| drawn.name(raw)) {
            let mut ledger = Ledger::new(Component::Adapter);
            let reason = "large images are in the payload; the raw response references them";
            ledger.note("/extra/raw", Action::Replaced, reason);
            answer.adaptations = ledger.into_entries();
        }
        answer.raw = raw;
        Ok(answer)
    }

    fn decode(&self, value: Value, asked: &Payload) -> Result<UnaryResponse, Error> {
        match asked {
            Payload::Embeddings(asked) => {
                let response = embeddings::decode_response(self.dialect, value)?;
                let response = in_order(response, asked)?;
                let usage = response.usage.clone();
                Ok(answer(ResponsePayload::Embeddings(response), usage))
            }
            Payload::Transcription(_) => {
                let response = openai_transcriptions::decode_response(value)?;
                let usage = response.usage.clone();
                Ok(answer(ResponsePayload::Transcription(response), usage))
            }
            // JSON instead of audio: an error body with a success status, or an unknown response.
            Payload::Speech(_) | Payload::Image(_) | Payload::Chat(_) | Payload::Realtime(_) => {
                let error = error_body::inside(self.dialect, &value);
                Err(error.unwrap_or_else(|| transport_error::unexpected_content_type("application/json")))
            }
        }
    }

    async fn refusal(&self, reply: HttpResponse) -> Error {
        let status = reply.status;
        let retry_after = reply.header(&RETRY_AFTER).map(String::from);
        let body = self.gather(reply, ERROR_BYTES_MAX).await;
        error_body::decode(
            self.dialect,
            status,
            retry_after.as_deref(),
            &body.unwrap_or_default(),
        )
    }

    async fn gather(&self, reply: HttpResponse, limit: usize) -> Result<Vec<u8>, Error> {
        let gathered = collect(reply, limit, self.idle, self.deadline).await;
        gathered.map_err(|error| self.timely(error))
    }

    async fn pour<W: Write + Send + 'static>(&self, reply: HttpResponse, out: W) -> Result<W, Error> {
        let poured = copy_to(reply, MEDIA_ANSWER_BYTES_MAX, self.idle, self.deadline, out).await;
        poured.map_err(|error| self.timely(error))
    }

    /// Reports an idle timeout at the deadline as a total timeout.
    fn timely(&self, error: Error) -> Error {
        match error.kind {
            ErrorKind::Timeout if Instant::now() >= self.deadline => {
                transport_error::total_timeout(Phase::MidStream, self.total)
            }
            _ => error,
        }
    }
}

fn parse(text: &[u8]) -> Result<Value, Error> {
    serde_json::from_slice(text).map_err(|error| {
        Error::invalid_response(Phase::MidStream, format!("the answer is not JSON: {error}"))
    })
}

/// One vector per text, in order of their indexes. A missing vector is an error.
fn in_order(
    mut response: EmbeddingsResponse,
    asked: &EmbeddingsRequest,
) -> Result<EmbeddingsResponse, Error> {
    response.embeddings.sort_by_key(|one| one.index);
    let counted = (0..)
        .zip(&response.embeddings)
        .all(|(place, one)| one.index == place);
    // Lists of tokens are not counted here.
    let expected = asked.input.len();
    if !counted || (expected > 0 && response.embeddings.len() != expected) {
        let message = format!(
            "the answer has {} vectors for {expected} texts",
            response.embeddings.len()
        );
        return Err(Error::invalid_response(Phase::MidStream, message));
    }
    Ok(response)
}

fn answer(payload: ResponsePayload, usage: Option<Usage>) -> UnaryResponse {
    UnaryResponse {
        payload,
        usage,
        adaptations: Vec::new(),
        raw: None,
    }
}
