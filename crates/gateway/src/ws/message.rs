//! WebSocket messages: parsing and encoding.

use engine::run::ResumePoint;
use ir::TraceContext;
use module::Code;
use module::envelope::{Envelope, ErrorBody};
use module::stream::Checkpoint;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::idempotency::IdempotencyHeaders;
use crate::limits;
use crate::request::{ExecuteBody, check_json_values};
use crate::response::ApiError;

/// A message of the client. `id` is chosen by the client.
#[derive(Debug)]
pub(super) enum ClientMessage {
    Execute(Box<Execute>),
    Resume {
        id: String,
        session_id: String,
        place: ResumePoint,
    },
    Cancel {
        id: String,
    },
    Ping {
        id: Option<String>,
    },
}

/// Starts a run. What HTTP sends in headers is in the message.
#[derive(Debug)]
pub(super) struct Execute {
    pub(super) id: String,
    pub(super) module: String,
    pub(super) body: ExecuteBody,
    /// `_idempotency_key`.
    pub(super) repeat: IdempotencyHeaders,
    /// `_traceparent`.
    pub(super) trace: Option<TraceContext>,
}

#[derive(Debug, Deserialize)]
struct Resume {
    session_id: String,
    #[serde(default)]
    last_seq: u64,
    last_checkpoint: Option<Checkpoint>,
    #[serde(default)]
    strict: bool,
}

/// An invalid message, with its id if it has a readable one.
#[derive(Debug)]
pub(super) struct InvalidMessage {
    pub(super) id: Option<String>,
    pub(super) refusal: ApiError,
}

impl ClientMessage {
    pub(super) fn parse(text: &str) -> Result<Self, InvalidMessage> {
        check_json_values(text.as_bytes()).map_err(|refusal| InvalidMessage { id: None, refusal })?;
        let map = serde_json::from_str::<Map<String, Value>>(text).map_err(|error| InvalidMessage {
            id: None,
            refusal: ApiError::new(ErrorBody::new(
                Code::E1000,
                format!("the message is not a JSON object: {error}"),
            )),
        })?;
        let id = map.get("id").and_then(Value::as_str).map(String::from);
        Self::of(map, id.clone()).map_err(|refusal| InvalidMessage { id, refusal })
    }

    fn of(mut map: Map<String, Value>, id: Option<String>) -> Result<Self, ApiError> {
        let kind = map.remove("type");
        let kind = kind.as_ref().and_then(Value::as_str).unwrap_or_default();
        if kind == "ping" {
            return Ok(Self::Ping { id });
        }
        let id = id.filter(|id| !id.is_empty() && id.len() <= limits::SOCKET_ID_BYTES_MAX);
        let id = id.ok_or_else(|| refuse(Code::E1002, "`id` must be a text of 1 to 256 bytes"))?;
        map.remove("id");
        match kind {
            "execute" => {
                let module = map.remove("module");
                let module = module.as_ref().and_then(Value::as_str).map(String::from);
                let module = module.ok_or_else(|| refuse(Code::E1002, "`module` is missing"))?;
                map.entry("input").or_insert_with(|| json!({}));
                if let Some(key) = map.keys().find(|key| *key != "input" && !key.starts_with('_')) {
                    return Err(refuse(Code::E1001, &format!("unknown key `{key}`")));
                }
                let text = |value: Option<Value>| value.as_ref().and_then(Value::as_str).map(String::from);
                // An invalid trace context is ignored, as in a header.
                let trace = text(map.remove("_traceparent")).and_then(|text| text.trim().parse().ok());
                let repeat = match map.remove("_idempotency_key") {
                    None => IdempotencyHeaders::default(),
                    Some(key) => IdempotencyHeaders::from_key(key.as_str().unwrap_or_default())?,
                };
                Ok(Self::Execute(Box::new(Execute {
                    id,
                    module,
                    body: ExecuteBody::parse(Value::Object(map))?,
                    repeat,
                    trace,
                })))
            }
            "resume" => {
                let resume: Resume = serde_json::from_value(Value::Object(map))
                    .map_err(|error| refuse(Code::E1001, &format!("resume: {error}")))?;
                let place = ResumePoint {
                    seq: resume.last_seq,
                    checkpoint: resume.last_checkpoint,
                    strict: resume.strict,
                };
                let session_id = resume.session_id;
                Ok(Self::Resume {
                    id,
                    session_id,
                    place,
                })
            }
            "cancel" => Ok(Self::Cancel { id }),
            other => Err(refuse(
                Code::E1004,
                &format!("`{other}` is not one of execute, resume, cancel, ping"),
            )),
        }
    }
}

pub(super) fn refuse(code: Code, message: &str) -> ApiError {
    ApiError::new(ErrorBody::new(code, message))
}

/// Wraps an encoded event body.
pub(super) fn event(id: &str, body: &str) -> String {
    format!(r#"{{"type":"event","id":{},"event":{body}}}"#, Value::from(id))
}

pub(super) fn error(id: Option<&str>, refusal: ApiError) -> String {
    let envelope = Envelope::failure(refusal.into_body()).into_value();
    json!({"type": "error", "id": id, "event": envelope}).to_string()
}

pub(super) fn pong(id: Option<&str>) -> String {
    json!({"type": "pong", "id": id}).to_string()
}
