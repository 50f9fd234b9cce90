//! Requests that come again. A client that lost the answer sends the same request with the same
//! `Idempotency-Key` and gets the answer of the run that was made the first time, running or not. The name
//! stands in the run's own row, written in the step that makes the run; so two requests cannot both win,
//! and a restart forgets nothing.

use axum::http::HeaderMap;
use engine::{RunMode, Repeatable};
use module::envelope::ErrorBody;
use module::{Code, Module};
use sha2::{Digest, Sha256};

use crate::limits;
use crate::response::ApiError;
use crate::request::{ExecuteBody, RequestOptions};

pub(crate) const REPLAYED_HEADER: &str = "idempotency-replayed";

/// What a request says about coming again.
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

    /// Under this name, once.
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

    /// Whether the caller may come back for the rest of a stream.
    pub(crate) fn resumable(&self) -> bool {
        self.resumable
    }

    /// Whether the answer is wanted even if its caller leaves.
    pub(crate) fn survives_disconnect(&self) -> bool {
        self.resumable || self.key.is_some()
    }

    pub(crate) fn key_for(&self, module: &Module, body: &ExecuteBody, mode: RunMode) -> Option<Repeatable> {
        let key = self.key.clone()?;
        // Not the trace: a second try is a span of its own.
        let RequestOptions {
            response_mode: _,
            chunk_type,
            progress,
            on_disconnect,
            model,
            strict,
            trace: _,
            backend,
        } = &body.options;
        let options = (mode, chunk_type, progress, on_disconnect, model, strict, backend);
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
