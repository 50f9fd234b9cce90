//! What went wrong on the way to an answer: a closed kind that decides what happens next, and facts
//! for those who look into it.

use serde::{Deserialize, Serialize};

/// The kind decides retry, status and log level. Nothing else does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    InvalidRequest,
    Unsupported,
    Auth,
    Quota,
    RateLimited,
    ContextWindow,
    ContentPolicy,
    Timeout,
    Network,
    Upstream,
    InvalidResponse,
    NoCandidate,
    Cancelled,
    Internal,
}

/// How far the call had come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    BeforeSend,
    BeforeFirstByte,
    MidStream,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    pub kind: ErrorKind,
    pub message: String,
    pub phase: Phase,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

impl Error {
    pub fn new(kind: ErrorKind, phase: Phase, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            phase,
            status: None,
            retry_after_ms: None,
        }
    }
}
