//! The six kinds of chunk and their JSON. Serialized chunks pass [`check_chunk`], and every value that passes
//! it can be read. Chunks are serialized directly to the output, without an intermediate tree.

use serde::ser::SerializeMap as _;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use super::check::{check_chunk, integer};
use super::field;
use super::violation::Violation;
use crate::code::{Code, is_module_specific};
use crate::envelope::{Envelope, EnvelopeBody, ErrorBody, Meta};

/// One event of a module stream. Serializes to the JSON sent to the client.
#[derive(Clone, Debug, PartialEq)]
pub enum Chunk {
    /// First in every stream, and again after a resume. `meta.confidence` may be null here only.
    Meta {
        session_id: String,
        resume_from_seq: Option<u64>,
        meta: Map<String, Value>,
        annotations: Map<String, Value>,
    },
    /// Text appended to the string at `field` (see [`field`]).
    Delta {
        seq: u64,
        field: String,
        delta: String,
        checkpoint: Option<Checkpoint>,
    },
    /// The value at `field` replaced; `data` as the field replaces everything.
    Snapshot {
        seq: u64,
        field: String,
        data: Value,
    },
    Progress(Progress),
    /// Terminal chunk of a successful stream.
    Final {
        meta: Map<String, Value>,
        data: Map<String, Value>,
        usage: Option<Value>,
        annotations: Map<String, Value>,
    },
    /// Terminal chunk of a failed stream.
    Error {
        session_id: Option<String>,
        error: Map<String, Value>,
        partial_data: Option<Map<String, Value>>,
        annotations: Map<String, Value>,
    },
}

/// Key under which an error chunk carries the meta of its envelope.
pub(super) const META_ANNOTATION: &str = "_meta";

/// Size of the sent part of a field: UTF-8 bytes, and the first six hex digits of their SHA-256.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    pub offset: u64,
    pub hash: String,
}

/// Progress of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// 0 to 100, never decreasing within a run.
    pub percent: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// What a client needs to resume after an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovery {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_seq: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_checkpoint: Option<Checkpoint>,
    pub retry_after_ms: u64,
    pub max_retries: u32,
}

impl Recovery {
    /// The recovery data of an interrupted stream; with `last_seq` 0, no chunk was sent.
    pub fn after(last_seq: u64, last_checkpoint: Option<Checkpoint>) -> Self {
        Self {
            last_seq: (last_seq > 0).then_some(last_seq),
            last_checkpoint,
            retry_after_ms: 1_000,
            max_retries: 3,
        }
    }
}

impl Chunk {
    /// The terminal chunk of a stream with this envelope. Folding it returns the envelope. An error chunk has
    /// no meta field, so a meta that folding would not reproduce is added as an annotation.
    pub fn ending(
        session_id: &str,
        envelope: Envelope,
        usage: Option<Value>,
        recovery: Option<&Recovery>,
    ) -> Self {
        let mut annotations = envelope.annotations;
        match envelope.body {
            EnvelopeBody::Success { data } => Self::Final {
                meta: envelope.meta.into_map(),
                data,
                usage,
                annotations,
            },
            EnvelopeBody::Failure { error, partial_data } => {
                if envelope.meta != Meta::of_failure(&error.message) {
                    let meta = Value::Object(envelope.meta.into_map());
                    annotations.insert(String::from(META_ANNOTATION), meta);
                }
                Self::Error {
                    session_id: Some(String::from(session_id)),
                    error: narrow_error(*error, recovery),
                    partial_data,
                    annotations,
                }
            }
        }
    }

    /// The sequence number of a delta or a snapshot.
    pub fn seq(&self) -> Option<u64> {
        match self {
            Self::Delta { seq, .. } | Self::Snapshot { seq, .. } => Some(*seq),
            Self::Meta { .. } | Self::Progress(_) | Self::Final { .. } | Self::Error { .. } => None,
        }
    }

    /// Whether this chunk is terminal; only the meta chunk of a resumed stream may follow.
    pub fn is_end(&self) -> bool {
        matches!(self, Self::Final { .. } | Self::Error { .. })
    }

    /// The event name of this chunk in server-sent events.
    pub fn event_name(&self) -> &'static str {
        match self {
            Self::Meta { .. } => "meta",
            Self::Delta { .. } | Self::Snapshot { .. } => "chunk",
            Self::Progress(_) => "progress",
            Self::Final { .. } => "final",
            Self::Error { .. } => "error",
        }
    }

    pub fn into_value(self) -> Value {
        // All maps have string keys and all numbers are finite, so serialization cannot fail.
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Reads a chunk. Keys that begin with `_` become annotations if the kind of chunk has annotations. A
    /// delta or snapshot without a field refers to all of the data.
    pub fn from_value(value: Value) -> Result<Self, Vec<Violation>> {
        let violations = check_chunk(&value);
        if !violations.is_empty() {
            return Err(violations);
        }
        Ok(Self::of_own(value))
    }

    /// Reads a chunk that this runtime has written, without checks.
    pub fn of_own(value: Value) -> Self {
        let mut map = into_map(value);
        if let Some(chunk) = map.remove("chunk") {
            return read_numbered(into_map(chunk));
        }
        if let Some(progress) = map.remove("progress") {
            let mut progress = into_map(progress);
            return Self::Progress(Progress {
                percent: number(&progress, "percent").try_into().unwrap_or(100),
                stage: take_string(&mut progress, "stage"),
                message: take_string(&mut progress, "message"),
            });
        }
        let mut annotations = Map::new();
        let mut fields = Map::new();
        for (key, value) in map {
            if key.starts_with('_') {
                annotations.insert(key, value);
            } else {
                fields.insert(key, value);
            }
        }
        if fields.contains_key("final") {
            Self::Final {
                meta: take_map(&mut fields, "meta"),
                data: take_map(&mut fields, "data"),
                usage: fields.remove("usage"),
                annotations,
            }
        } else if fields.contains_key("error") {
            Self::Error {
                session_id: take_string(&mut fields, "session_id"),
                error: take_map(&mut fields, "error"),
                partial_data: fields.remove("partial_data").map(into_map),
                annotations,
            }
        } else {
            Self::Meta {
                session_id: take_string(&mut fields, "session_id").unwrap_or_default(),
                resume_from_seq: fields.get("resume_from_seq").and_then(integer),
                meta: take_map(&mut fields, "meta"),
                annotations,
            }
        }
    }
}

/// An error chunk has fewer fields than an envelope's error and allows registered codes only. The other
/// fields are moved to `details`; [`widen_error`] restores them.
fn narrow_error(error: ErrorBody, recovery: Option<&Recovery>) -> Map<String, Value> {
    let mut details = error.details.unwrap_or_default();
    let number = Code::find(&error.code).filter(|code| !code.is_warning());
    // A module's own code: E2004, with the original code in `module_code`.
    let number = number.unwrap_or(Code::E2004);
    if number.as_str() != error.code {
        details.insert(String::from("module_code"), Value::String(error.code));
    }
    if let Some(suggestion) = error.suggestion {
        details.insert(String::from("suggestion"), Value::String(suggestion));
    }
    if !error.more.is_empty() {
        details.insert(String::from("more"), Value::Object(error.more));
    }
    let mut map = Map::new();
    map.insert(String::from("code"), Value::from(number.as_str()));
    map.insert(String::from("message"), Value::String(error.message));
    map.insert(String::from("recoverable"), Value::Bool(error.recoverable));
    if let Some(recovery) = recovery {
        map.insert(
            String::from("recovery"),
            serde_json::to_value(recovery).unwrap_or_default(),
        );
    }
    if !details.is_empty() {
        map.insert(String::from("details"), Value::Object(details));
    }
    map
}

/// Converts the error of an error chunk to the error of an envelope.
pub(super) fn widen_error(mut chunk: Map<String, Value>) -> Map<String, Value> {
    let mut details = take_map(&mut chunk, "details");
    let mut map = Map::new();
    let code = chunk.remove("code").unwrap_or_default();
    // A value that is not a code stays in the details, as in the envelope.
    let is_code = |text: &str| Code::find(text).is_some() || is_module_specific(text);
    let own = match details.get("module_code").and_then(Value::as_str) {
        Some(own) if is_code(own) => details.remove("module_code"),
        _ => None,
    };
    map.insert(String::from("code"), own.unwrap_or(code));
    for key in ["message", "recoverable"] {
        if let Some(value) = chunk.remove(key) {
            map.insert(String::from(key), value);
        }
    }
    if let Some(suggestion) = details.remove("suggestion") {
        map.insert(String::from("suggestion"), suggestion);
    }
    let more = take_map(&mut details, "more");
    if !details.is_empty() {
        map.insert(String::from("details"), Value::Object(details));
    }
    map.extend(chunk);
    map.extend(more);
    map
}

fn read_numbered(mut chunk: Map<String, Value>) -> Chunk {
    let seq = number(&chunk, "seq");
    let field = take_string(&mut chunk, "field").unwrap_or_else(|| String::from(field::ROOT));
    if let Some(delta) = take_string(&mut chunk, "delta") {
        // An incomplete checkpoint cannot be verified and is ignored.
        let checkpoint = chunk.get("checkpoint").and_then(|checkpoint| {
            Some(Checkpoint {
                offset: checkpoint.get("offset").and_then(integer)?,
                hash: String::from(checkpoint.get("hash")?.as_str()?),
            })
        });
        Chunk::Delta {
            seq,
            field,
            delta,
            checkpoint,
        }
    } else {
        let data = chunk.remove("data").unwrap_or_default();
        Chunk::Snapshot { seq, field, data }
    }
}

fn into_map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

fn take_map(map: &mut Map<String, Value>, key: &str) -> Map<String, Value> {
    map.remove(key).map(into_map).unwrap_or_default()
}

fn take_string(map: &mut Map<String, Value>, key: &str) -> Option<String> {
    match map.remove(key) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

fn number(map: &Map<String, Value>, key: &str) -> u64 {
    map.get(key).and_then(integer).unwrap_or_default()
}

impl Serialize for Chunk {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self {
            Self::Meta {
                session_id,
                resume_from_seq,
                meta,
                annotations,
            } => {
                map.serialize_entry("ok", &true)?;
                map.serialize_entry("streaming", &true)?;
                map.serialize_entry("session_id", session_id)?;
                if let Some(seq) = resume_from_seq {
                    map.serialize_entry("resumed", &true)?;
                    map.serialize_entry("resume_from_seq", seq)?;
                }
                map.serialize_entry("meta", meta)?;
                write_all(&mut map, annotations)?;
            }
            Self::Delta { .. } | Self::Snapshot { .. } => map.serialize_entry("chunk", &Numbered(self))?,
            Self::Progress(progress) => map.serialize_entry("progress", progress)?,
            Self::Final {
                meta,
                data,
                usage,
                annotations,
            } => {
                map.serialize_entry("final", &true)?;
                map.serialize_entry("meta", meta)?;
                map.serialize_entry("data", data)?;
                write_some(&mut map, "usage", usage.as_ref())?;
                write_all(&mut map, annotations)?;
            }
            Self::Error {
                session_id,
                error,
                partial_data,
                annotations,
            } => {
                map.serialize_entry("ok", &false)?;
                map.serialize_entry("streaming", &true)?;
                write_some(&mut map, "session_id", session_id.as_ref())?;
                map.serialize_entry("error", error)?;
                write_some(&mut map, "partial_data", partial_data.as_ref())?;
                write_all(&mut map, annotations)?;
            }
        }
        map.end()
    }
}

/// The content of a delta or a snapshot.
struct Numbered<'a>(&'a Chunk);

impl Serialize for Numbered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("seq", &self.0.seq())?;
        match self.0 {
            Chunk::Delta {
                seq: _,
                field,
                delta,
                checkpoint,
            } => {
                map.serialize_entry("type", "delta")?;
                map.serialize_entry("field", field)?;
                map.serialize_entry("delta", delta)?;
                write_some(&mut map, "checkpoint", checkpoint.as_ref())?;
            }
            Chunk::Snapshot { seq: _, field, data } => {
                map.serialize_entry("type", "snapshot")?;
                map.serialize_entry("field", field)?;
                map.serialize_entry("data", data)?;
            }
            Chunk::Meta { .. } | Chunk::Progress(_) | Chunk::Final { .. } | Chunk::Error { .. } => {}
        }
        map.end()
    }
}

fn write_some<M: serde::ser::SerializeMap>(
    map: &mut M,
    key: &str,
    value: Option<&impl Serialize>,
) -> Result<(), M::Error> {
    match value {
        Some(value) => map.serialize_entry(key, value),
        None => Ok(()),
    }
}

fn write_all<M: serde::ser::SerializeMap>(map: &mut M, fields: &Map<String, Value>) -> Result<(), M::Error> {
    fields
        .iter()
        .try_for_each(|(key, value)| map.serialize_entry(key, value))
}
