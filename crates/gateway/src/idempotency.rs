//! Idempotent requests: a client that lost the response sends the request again with the same
//! `Idempotency-Key` and gets the response of the first run, running or ended. The key is stored in the row
//! of the run, in the same transaction, so two requests cannot both start a run, and a restart loses no key.

use axum::http::HeaderMap;
use engine::{Repeatable, RunMode};
use module::envelope::ErrorBody;
use module::{Code, Module};
use sha2::{Digest, Sha256};

use crate::limits;
use crate::request::{ExecuteBody, RequestOptions};
use crate::response::ApiError;

pub(crate) const REPLAYED_HEADER: &str = "idempotency-replayed";

/// Headers of a request about repetition and resumption.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct IdempotencyHeaders {
    key: Option<String>,
    resumable: bool,
}

impl IdempotencyHeaders {
    pub(crate) fn from_headers(headers: &HeaderMap) -> Result<Self, ApiError> {
        let resumable = headers.get("x-cogn-resumable").is_some_and(|value| value == "1");
        let Some(value) = headers.get("idempotency-key") else {
            return Ok(Self { key: None, resumable });
        };
        let once = Self::from_key(value.to_str().unwrap_or_default())?;
        Ok(Self { resumable, ..once })
    }

    /// Validates a key.
    pub(crate) fn from_key(name: &str) -> Result<Self, ApiError> {
        let key = name.trim();
        if key.is_empty() || key.len() > limits::IDEMPOTENCY_KEY_BYTES_MAX {
            let message = format!(
                "an idempotency key must be 1 to {} printable characters",
                limits::IDEMPOTENCY_KEY_BYTES_MAX
            );
            return Err(ApiError::new(ErrorBody::new(Code::E1001, message)));
        }
        Ok(Self {
            key: Some(String::from(key)),
            resumable: false,
        })
    }

    /// Whether the stream can be resumed.
    pub(crate) fn resumable(&self) -> bool {
        self.resumable
    }

    /// Whether the run continues when its client disconnects.
    pub(crate) fn survives_disconnect(&self) -> bool {
        self.resumable || self.key.is_some()
    }

    pub(crate) fn key_for(&self, module: &Module, body: &ExecuteBody, mode: RunMode) -> Option<Repeatable> {
        let key = self.key.clone()?;
        // The trace is not part of the fingerprint: a second request is another span.
        let RequestOptions {
            response_mode: _,
            chunk_type,
            progress,
            on_disconnect,
            generation,
            model,
            strict,
            trace: _,
            backend,
        } = &body.options;
        let options = (
            mode,
            chunk_type,
            progress,
            on_disconnect,
            model,
            strict,
            backend,
            generation,
        );
        let mut hash = Sha256::new();
        for part in [
            String::from(module.name()),
            format!("{options:?}"),
            body.input.to_string(),
        ] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part.as_bytes());
        }
        let fingerprint = hex::encode(hash.finalize());
        Some(Repeatable { key, fingerprint })
    }
}
