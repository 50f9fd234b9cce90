//! Token buckets of callers with a rate limit.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use module::Code;
use module::envelope::ErrorBody;
use tenancy::Caller;
use tenancy::limit::Bucket;
use tokio::time::Instant;

use crate::limits;
use crate::response::ApiError;

#[derive(Debug)]
pub(super) struct RateBuckets {
    /// Origin of the bucket times, monotonic unlike the wall clock.
    began: Instant,
    buckets: Mutex<HashMap<String, Bucket>>,
}

impl Default for RateBuckets {
    fn default() -> Self {
        Self {
            began: Instant::now(),
            buckets: Mutex::default(),
        }
    }
}

impl RateBuckets {
    pub(super) fn pass(&self, caller: &Caller) -> Result<(), ApiError> {
        let Some(rate) = caller.rate else { return Ok(()) };
        let now_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        // No code panics while it holds the lock, so a poisoned map is consistent.
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= limits::RATE_BUCKETS_MAX && !buckets.contains_key(&caller.client) {
            buckets.retain(|_, bucket| !bucket.is_full(now_ms));
        }
        let bucket = buckets
            .entry(caller.client.clone())
            .or_insert_with(|| Bucket::new(rate, now_ms));
        if bucket.rate() != rate {
            *bucket = Bucket::new(rate, now_ms);
        }
        bucket.take(now_ms).map_err(|wait_ms| {
            let body = ErrorBody::new(Code::E4002, format!("these credentials allow {rate} requests"))
                .detail("limit", "rate")
                .detail("retry_after_ms", wait_ms);
            ApiError::new(body)
        })
    }
}
