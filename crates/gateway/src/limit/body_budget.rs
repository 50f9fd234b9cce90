//! The memory of request bodies that are being read, parsed or used by a call. One caller gets at most half of
//! it, so that its bodies cannot make others wait. A body acquires its bytes before it is read and its JSON
//! values before it is parsed; they are two pools, because a holder of the first may wait for the second.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::StatusCode;
use module::Code;
use module::envelope::ErrorBody;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::limits;
use crate::response::ApiError;

/// Semaphores count in units of this size.
const UNIT_BYTES: usize = 1024;

#[derive(Debug)]
pub(crate) struct BodyBudget {
    bytes: Arc<Semaphore>,
    values: Arc<Semaphore>,
    /// Most units of one caller in each pool.
    share: usize,
    callers: Mutex<HashMap<String, Arc<CallerShare>>>,
}

#[derive(Debug)]
struct CallerShare {
    bodies: Arc<Semaphore>,
    forms: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
    values: Arc<Semaphore>,
}

/// Parts of the budget, released on drop.
#[derive(Debug)]
pub(crate) struct BodyPermit {
    share: Arc<CallerShare>,
    /// Ends when the body is complete.
    reading: Option<OwnedSemaphorePermit>,
    held: Vec<OwnedSemaphorePermit>,
    bytes: usize,
}

impl BodyBudget {
    /// Half of the bytes for bodies, half for their values.
    pub(crate) fn new(bytes_max: usize) -> Self {
        let units = (bytes_max / 2 / UNIT_BYTES).clamp(2, Semaphore::MAX_PERMITS);
        Self {
            bytes: Arc::new(Semaphore::new(units)),
            values: Arc::new(Semaphore::new(units)),
            share: units / 2,
            callers: Mutex::default(),
        }
    }

    /// Waits until one more body of this caller may be read. Bounds the bodies that arrive slowly.
    pub(crate) async fn start(&self, caller: &str) -> Result<BodyPermit, ApiError> {
        let share = self.share_of(caller);
        let reading = within_wait(share.bodies.clone().acquire_owned()).await?;
        Ok(BodyPermit {
            share,
            reading,
            held: Vec::new(),
            bytes: 0,
        })
    }

    /// Waits for the memory of a body of this size. Small bodies are bounded by the number of runs.
    pub(crate) async fn reserve_bytes(&self, permit: &mut BodyPermit, bytes: usize) -> Result<(), ApiError> {
        if bytes <= limits::BODY_FREE_BYTES {
            return Ok(());
        }
        // The text, and the strings of its tree.
        self.reserve(permit, bytes.saturating_mul(2), |share| &share.bytes, &self.bytes)
            .await
    }

    /// Waits for the memory of a tree with so many values.
    pub(crate) async fn reserve_values(
        &self,
        permit: &mut BodyPermit,
        values: usize,
    ) -> Result<(), ApiError> {
        if values <= limits::JSON_FREE_VALUES {
            return Ok(());
        }
        let bytes = values.saturating_mul(limits::JSON_VALUE_BYTES);
        self.reserve(permit, bytes, |share| &share.values, &self.values)
            .await
    }

    /// Waits until one more form of this caller may be read.
    pub(crate) async fn start_form(&self, caller: &str) -> Result<OwnedSemaphorePermit, ApiError> {
        let forms = self.share_of(caller).forms.clone();
        within_wait(forms.acquire_owned()).await?.ok_or_else(busy)
    }

    async fn reserve(
        &self,
        permit: &mut BodyPermit,
        bytes: usize,
        own: impl Fn(&CallerShare) -> &Arc<Semaphore>,
        pool: &Arc<Semaphore>,
    ) -> Result<(), ApiError> {
        // What exceeds the share alone waits until it has the whole of it.
        let units = bytes.div_ceil(UNIT_BYTES).min(self.share);
        let units = u32::try_from(units).unwrap_or(u32::MAX);
        let own = own(&permit.share).clone().acquire_many_owned(units);
        let own = within_wait(own).await?;
        let pool = within_wait(pool.clone().acquire_many_owned(units)).await?;
        permit.held.extend(own.into_iter().chain(pool));
        permit.bytes += bytes;
        Ok(())
    }

    fn share_of(&self, caller: &str) -> Arc<CallerShare> {
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = callers.get(caller) {
            return share.clone();
        }
        if callers.len() >= limits::BODY_CALLERS_MAX {
            callers.retain(|_, share| Arc::strong_count(share) > 1);
        }
        let share = Arc::new(CallerShare {
            bodies: Arc::new(Semaphore::new(limits::BODIES_PER_CALLER_MAX)),
            forms: Arc::new(Semaphore::new(limits::FORMS_MAX / 2)),
            bytes: Arc::new(Semaphore::new(self.share)),
            values: Arc::new(Semaphore::new(self.share)),
        });
        callers.insert(String::from(caller), share.clone());
        share
    }
}

impl BodyPermit {
    /// The body is complete.
    pub(crate) fn end_reading(&mut self) {
        self.reading = None;
    }

    /// What the call holds until its end: the memory of a large body, nothing of an ordinary one.
    pub(crate) fn for_call(self) -> Option<Self> {
        (self.bytes > limits::BODY_HELD_BYTES).then_some(self)
    }
}

/// The permit. The semaphores are never closed, so `None` does not occur.
async fn within_wait<E>(
    permit: impl Future<Output = Result<OwnedSemaphorePermit, E>>,
) -> Result<Option<OwnedSemaphorePermit>, ApiError> {
    match tokio::time::timeout(limits::BODY_WAIT, permit).await {
        Ok(permit) => Ok(permit.ok()),
        Err(_) => Err(busy()),
    }
}

fn busy() -> ApiError {
    let pause_ms = u64::try_from(limits::RETRY_MIN.as_millis()).unwrap_or(u64::MAX);
    let body = ErrorBody::new(Code::E4002, "too many large request bodies at a time")
        .detail("limit", "server.body_memory_bytes_max")
        .detail("retry_after_ms", pause_ms);
    ApiError::with_status(body, StatusCode::SERVICE_UNAVAILABLE)
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::BodyBudget;

    const MIB: usize = 1024 * 1024;

    #[tokio::test]
    async fn one_caller_gets_half_and_others_do_not_wait() {
        let budget = BodyBudget::new(64 * MIB);
        let mut held = Vec::new();
        // 2 * 4 MiB each, 16 MiB of 32 for one caller.
        for _ in 0..2 {
            let mut permit = budget.start("greedy").await.unwrap();
            budget.reserve_bytes(&mut permit, 4 * MIB).await.unwrap();
            held.push(permit);
        }
        let mut third = budget.start("greedy").await.unwrap();
        assert!(budget.reserve_bytes(&mut third, MIB).now_or_never().is_none());
        let mut other = budget.start("modest").await.unwrap();
        assert!(budget.reserve_bytes(&mut other, 4 * MIB).now_or_never().is_some());
        held.pop();
        assert!(budget.reserve_bytes(&mut third, MIB).now_or_never().is_some());
    }

    #[tokio::test]
    async fn body_above_the_share_is_read_alone() {
        let budget = BodyBudget::new(8 * MIB);
        let mut large = budget.start("one").await.unwrap();
        assert!(
            budget
                .reserve_bytes(&mut large, 16 * MIB)
                .now_or_never()
                .is_some()
        );
        assert!(
            budget
                .reserve_values(&mut large, 500_000)
                .now_or_never()
                .is_some()
        );
        let mut second = budget.start("one").await.unwrap();
        assert!(
            budget
                .reserve_bytes(&mut second, 16 * MIB)
                .now_or_never()
                .is_none()
        );
    }
}
