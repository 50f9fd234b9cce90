//! What comes with a request besides the work: who asks, how often it may happen, and what is given back
//! when the run has ended.

use std::any::Any;
use std::fmt;

use futures::FutureExt;
use futures::future::BoxFuture;
use ir::RunId;
use module::envelope::ErrorBody;
use tenancy::Tenant;

use crate::engine::Engine;
use crate::error::Error;
use crate::limits;
use crate::port::IdempotencyClaim;

/// How a run was let in.
#[derive(Debug, Default)]
pub struct Admission {
    /// Who asks; what usage is counted under.
    pub client: String,
    /// A name under which this happens at most once.
    pub once: Option<Repeatable>,
    /// Somebody may come back for a whole answer, so a new server makes it again.
    pub resumable: bool,
    /// The only models that may answer.
    pub models: Option<Vec<String>>,
    pub permit: Option<Permit>,
    /// In place of a permit: the wait for one, which readers of a stream are told of.
    pub queue: Option<Queue>,
}

/// A request that may come again and must not be done again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repeatable {
    pub key: String,
    /// Tells whether it is the same request.
    pub fingerprint: String,
}

impl Repeatable {
    /// As it counts at this moment.
    pub(crate) fn since(self, now_ms: u64) -> IdempotencyClaim {
        IdempotencyClaim {
            key: self.key,
            fingerprint: self.fingerprint,
            since_ms: now_ms.saturating_sub(limits::IDEMPOTENCY_WINDOW_MS),
        }
    }
}

impl Engine {
    /// The run that a request has made already, if it was to happen only once and has.
    pub async fn made(
        &self,
        tenant: &Tenant,
        client: &str,
        repeatable: &Repeatable,
    ) -> Result<Option<RunId>, Error> {
        let once = repeatable.clone().since(self.clock().now_ms());
        match self.journal().find_by_idempotency_key(tenant, client, &once).await? {
            Some(named) if !named.same_request => Err(Error::DuplicateRequest(named)),
            named => Ok(named.map(|named| named.run)),
        }
    }
}

/// Held for as long as the run runs, whoever listens; what it means is its owner's business.
pub struct Permit(#[expect(dead_code, reason = "only its end matters")] Box<dyn Any + Send + Sync>);

impl Permit {
    pub fn new(held: impl Any + Send + Sync) -> Self {
        Self(Box::new(held))
    }
}

/// A permit that is still to come, or the reason why none will.
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
