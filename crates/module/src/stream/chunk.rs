//! The six kinds of chunk and their JSON.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One event of a streamed answer. Serialises to exactly the JSON that goes over the wire.
#[derive(Clone, Debug, PartialEq)]
pub enum Chunk {
    /// First in every stream, and again after a resume. `meta.confidence` may be null here only.
    Meta {
        session_id: String,
        resume_from_seq: Option<u64>,
        meta: Map<String, Value>,
        annotations: Map<String, Value>,
    },
    /// Text appended to the string at `field` (`data.a.b[0].c`).
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
    /// The end of a good stream.
    Final {
        meta: Map<String, Value>,
        data: Map<String, Value>,
        usage: Option<Value>,
        annotations: Map<String, Value>,
    },
    /// The end of a failed one.
    Error {
        session_id: Option<String>,
        error: Map<String, Value>,
        partial_data: Option<Map<String, Value>>,
        annotations: Map<String, Value>,
    },
}

/// How much of a field has been sent: UTF-8 bytes, and the first six hex digits of their SHA-256.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    pub offset: u64,
    pub hash: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// 0 to 100, never falling within a run.
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
