//! The body of an execute request. It is a wrapper if and only if it has `input` and all other keys start
//! with an underscore; otherwise it is the input itself.

mod discard;
mod json_values;
mod large_body;
mod reservation;
mod whole_number;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderMap, StatusCode};
use engine::run::{OnDisconnect, ResumePoint, RunOptions};
use futures::StreamExt;
use ir::{GenerationOptions, RunId, TraceContext};
use module::Code;
use module::envelope::ErrorBody;
use module::manifest::ChunkType;
use module::stream::Checkpoint;
use serde::Deserialize;
use serde_json::Value;

pub(crate) use discard::discard;
pub(crate) use json_values::check_json_values;
pub(crate) use large_body::handle;
pub(crate) use reservation::{Reservation, read_call, reserve_turn};

use crate::limit::BodyPermit;
use crate::limits;
use crate::negotiate::{RequestedMode, parse_mode};
use crate::response::ApiError;
use crate::state::Gateway;
use crate::stream_limit::ClientStreams;

/// Input, options and recovery of a request.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ExecuteBody {
    pub(crate) input: Value,
    pub(crate) options: RequestOptions,
    pub(crate) recovery: Option<RecoveryRequest>,
}

/// `_options`. Unknown fields are ignored: they may be those of a newer client.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, expecting = "an object")]
pub(crate) struct RequestOptions {
    pub(crate) response_mode: Option<RequestedMode>,
    pub(crate) chunk_type: Option<ChunkType>,
    pub(crate) progress: Option<bool>,
    pub(crate) on_disconnect: OnDisconnect,
    /// The requested model, among those that the caller may use.
    pub(crate) model: Option<String>,
    /// Settings of the model.
    pub(crate) generation: GenerationOptions,
    /// A mismatch is an error instead of a warning.
    pub(crate) strict: bool,
    /// From a header, never from the body.
    #[serde(skip)]
    pub(crate) trace: Option<TraceContext>,
    /// The only back-end that may be called; not settable over HTTP, where the server routes.
    #[serde(skip)]
    pub(crate) backend: Option<String>,
}

impl RequestOptions {
    pub(crate) fn parse(value: Option<Value>) -> Result<Self, ApiError> {
        // An unknown mode has the same code in header, query and body.
        let mode = value.as_ref().and_then(|options| options.get("response_mode"));
        mode.and_then(Value::as_str).map(parse_mode).transpose()?;
        let options: Self = part(value, "_options")?.unwrap_or_default();
        match options.generation.problem() {
            None => Ok(options),
            Some(problem) => {
                let error = ErrorBody::new(Code::E1001, format!("_options.generation: {problem}"));
                Err(ApiError::new(error.detail("pointer", "/_options/generation")))
            }
        }
    }

    pub(crate) fn run_options(&self) -> RunOptions {
        RunOptions {
            on_disconnect: self.on_disconnect,
            progress: self.progress.unwrap_or(true),
            chunk_type: self.chunk_type,
            model: self.model.clone(),
            trace: self.trace,
            backend: self.backend.clone(),
            generation: self.generation.clone(),
            ..RunOptions::default()
        }
    }
}

/// `_recovery`, or the equivalent headers.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(expecting = "an object")]
pub(crate) struct RecoveryRequest {
    pub(crate) session_id: String,
    #[serde(default, deserialize_with = "whole_number::integer")]
    pub(crate) last_seq: u64,
    #[serde(default, deserialize_with = "whole_number::checkpoint")]
    pub(crate) last_checkpoint: Option<Checkpoint>,
}

impl RecoveryRequest {
    /// The run id; `None` if the text is not a session id.
    pub(crate) fn run(&self) -> Option<RunId> {
        self.session_id.parse().ok()
    }

    pub(crate) fn resume_point(&self, strict: bool) -> ResumePoint {
        ResumePoint {
            seq: self.last_seq,
            checkpoint: self.last_checkpoint.clone(),
            strict,
        }
    }

    pub(crate) fn from_headers(headers: &HeaderMap) -> Result<Option<Self>, ApiError> {
        let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default());
        let Some(session_id) = text("x-cognitive-recovery-session") else {
            return Ok(None);
        };
        let last_seq = text("x-cognitive-recovery-seq").map(|seq| seq.trim().parse());
        let last_seq = last_seq.transpose().map_err(|_| {
            let message = "X-Cognitive-Recovery-Seq is not a sequence number";
            ApiError::new(ErrorBody::new(Code::E1001, message))
        })?;
        Ok(Some(Self {
            session_id: String::from(session_id),
            last_seq: last_seq.unwrap_or_default(),
            last_checkpoint: None,
        }))
    }
}

impl ExecuteBody {
    pub(crate) fn parse(value: Value) -> Result<Self, ApiError> {
        let Value::Object(mut map) = value else {
            return Ok(Self {
                input: value,
                ..Self::default()
            });
        };
        let wraps = map.contains_key("input") && map.keys().all(|key| key == "input" || key.starts_with('_'));
        if !wraps {
            return Ok(Self {
                input: Value::Object(map),
                ..Self::default()
            });
        }
        Ok(Self {
            input: map.remove("input").unwrap_or_default(),
            options: RequestOptions::parse(map.remove("_options"))?,
            recovery: part(map.remove("_recovery"), "_recovery")?,
        })
    }
}

fn part<T: serde::de::DeserializeOwned>(value: Option<Value>, name: &str) -> Result<Option<T>, ApiError> {
    let Some(value) = value else { return Ok(None) };
    serde_json::from_value(value).map(Some).map_err(|error| {
        let body = ErrorBody::new(Code::E1001, format!("{name}: {error}"));
        ApiError::new(body.detail("pointer", format!("/{name}")))
    })
}

/// A body with the memory it occupies, for a request that starts no run.
pub(crate) async fn read_bytes(
    gateway: &Gateway,
    client: &ClientStreams,
    body: Body,
) -> Result<(Bytes, BodyPermit), ApiError> {
    let mut permit = gateway.body_budget.start(&client.owner()).await?;
    let bytes = read_within(gateway, &mut permit, body, limits::BODY_BYTES_MAX).await?;
    Ok((bytes, permit))
}

/// Reads a body within a timeout, and within limits of its bytes and its JSON values, for which it acquires
/// memory first.
async fn read_within(
    gateway: &Gateway,
    permit: &mut BodyPermit,
    body: Body,
    bytes_max: usize,
) -> Result<Bytes, ApiError> {
    let declared = body.size_hint().upper().map(usize::try_from);
    let expected = match declared {
        Some(declared) => declared.unwrap_or(usize::MAX),
        None => bytes_max,
    };
    if expected > bytes_max {
        discard(gateway, body.into_data_stream());
        return Err(body_too_large(bytes_max));
    }
    gateway.body_budget.reserve_bytes(permit, expected).await?;
    let timeout = gateway.settings().body_read;
    let bytes = tokio::time::timeout(timeout, collect_body(gateway, body, bytes_max)).await;
    let bytes = bytes.map_err(|_| {
        let error = ErrorBody::new(Code::E1001, "the body did not arrive in time");
        let error = error.detail(
            "allowed_ms",
            u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
        );
        ApiError::with_status(error, StatusCode::REQUEST_TIMEOUT)
    })??;
    permit.end_reading();
    check_json_values(&bytes)?;
    if bytes.len() / 2 > limits::JSON_FREE_VALUES {
        let values = ir::json_values::count(&bytes);
        gateway.body_budget.reserve_values(permit, values).await?;
    }
    Ok(Bytes::from(bytes))
}

/// A body as JSON; an empty one is an empty object.
pub(crate) fn parse_json(bytes: &[u8]) -> Result<Value, ApiError> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    serde_json::from_slice(bytes).map_err(|error| {
        let body = ErrorBody::new(Code::E1000, format!("the body is not JSON: {error}"));
        ApiError::new(
            body.suggest("send the input as one JSON object")
                .detail("stage", "request"),
        )
    })
}

/// Reads the whole body; bytes beyond the limit are not buffered.
async fn collect_body(gateway: &Gateway, body: Body, bytes_max: usize) -> Result<Vec<u8>, ApiError> {
    let mut bytes = Vec::new();
    let mut pieces = body.into_data_stream();
    while let Some(piece) = pieces.next().await {
        let piece =
            piece.map_err(|_| ApiError::new(ErrorBody::new(Code::E1001, "the body is incomplete")))?;
        if bytes.len() + piece.len() > bytes_max {
            discard(gateway, pieces);
            return Err(body_too_large(bytes_max));
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

fn body_too_large(allowed: usize) -> ApiError {
    let error = ErrorBody::new(Code::E1005, format!("the body exceeds {allowed} bytes"));
    ApiError::new(error.detail("allowed", allowed))
}

#[cfg(test)]
mod tests;
