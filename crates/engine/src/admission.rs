//! The caller's part of a run request: client id, idempotency key, allowed models, and the permit that is
//! released when the run ends.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use module::envelope::ErrorBody;

use crate::limits;
use crate::port::IdempotencyClaim;
use crate::run::ProgressMeter;

/// The caller's context of one run.
#[derive(Debug, Default)]
pub struct Admission {
    /// Client id; usage is recorded under it.
    pub client: String,
    /// The idempotency key, if the client sent one.
    pub once: Option<Repeatable>,
    /// The client may resume a synchronous run, so recovery reruns it.
    pub resumable: bool,
    /// The only models that may answer.
    pub models: Option<Vec<String>>,
    /// Where the run records its progress for an observer in this process.
    pub meter: Option<Arc<ProgressMeter>>,
    pub permit: Option<Permit>,
    /// Instead of a permit: the wait for one, reported to readers of a stream as progress.
    pub queue: Option<Queue>,
}

/// An idempotency key and the request that it was sent with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repeatable {
    pub key: String,
    /// Distinguishes a repeated request from another request with the same key.
    pub fingerprint: String,
}

impl Repeatable {
    /// The claim of this key at `now_ms`.
    pub(crate) fn since(self, now_ms: u64) -> IdempotencyClaim {
        IdempotencyClaim {
            key: self.key,
            fingerprint: self.fingerprint,
            since_ms: now_ms.saturating_sub(limits::IDEMPOTENCY_WINDOW_MS),
        }
    }
}

/// Opaque guard, released when the run ends, independent of its readers.
pub struct Permit(#[expect(dead_code, reason = "only dropped")] Box<dyn Any + Send + Sync>);

impl Permit {
    pub fn new(guard: impl Any + Send + Sync) -> Self {
        Self(Box::new(guard))
    }
}

/// A pending permit, or the error that refuses it.
pub struct Queue(pub(crate) BoxFuture<'static, Result<Permit, Box<ErrorBody>>>);

impl Queue {
    pub fn new(wait: impl Future<Output = Result<Permit, Box<ErrorBody>>> + Send + 'static) -> Self {
        Self(wait.boxed())
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Queue")
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Permit")
    }
}
