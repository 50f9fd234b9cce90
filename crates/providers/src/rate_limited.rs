//! A back-end with a limit of calls per minute. A call beyond the limit is not sent: it fails with the error
//! of a rate-limited server, including the retry delay, so that the router selects another back-end or
//! waits. Several instances of one back-end share one limit.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use engine::port::{Backend, EventStream, RawItem, RawRequest, RawStream, UnaryResponse, Upstream};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use ir::{Error, ErrorKind, Event, Phase, Request};
use tokio::time::Instant;

const WINDOW: Duration = Duration::from_secs(60);

/// Calls within any minute. Bursts are allowed up to the limit.
#[derive(Debug)]
pub struct RequestWindow {
    per_minute: u32,
    /// When the bucket will be empty again; a later time means a fuller bucket.
    empty_at: Mutex<Option<Instant>>,
}

impl RequestWindow {
    pub fn new(per_minute: u32) -> Self {
        Self {
            per_minute: per_minute.max(1),
            empty_at: Mutex::default(),
        }
    }

    /// Takes a slot, or returns the time until one is free.
    fn take(&self, now: Instant) -> Result<(), Duration> {
        let step = WINDOW / self.per_minute;
        let mut empty_at = self.empty_at.lock().unwrap_or_else(PoisonError::into_inner);
        let from = empty_at.map_or(now, |at| at.max(now));
        let full = (from + step).saturating_duration_since(now);
        if full > WINDOW {
            return Err(full - WINDOW);
        }
        *empty_at = Some(from + step);
        Ok(())
    }
}

#[derive(Debug)]
pub struct RateLimited {
    upstream: Arc<dyn Upstream>,
    pace: Arc<RequestWindow>,
}

impl RateLimited {
    pub fn new(upstream: Arc<dyn Upstream>, pace: Arc<RequestWindow>) -> Self {
        Self { upstream, pace }
    }
}

impl RateLimited {
    /// Takes a slot, or returns the error of a rate-limited server.
    fn take(&self) -> Result<(), Error> {
        let Err(wait) = self.pace.take(Instant::now()) else {
            return Ok(());
        };
        let name = &self.upstream.backend().name;
        let message = format!(
            "back-end {name} is limited to {} calls per minute",
            self.pace.per_minute
        );
        let mut error = Error::new(ErrorKind::RateLimited, Phase::BeforeSend, message);
        error.retry_after_ms = u64::try_from(wait.as_millis()).ok();
        Err(error)
    }
}

impl Upstream for RateLimited {
    fn backend(&self) -> &Backend {
        self.upstream.backend()
    }

    fn stream(&self, request: Arc<Request>) -> EventStream {
        match self.take() {
            Ok(()) => self.upstream.stream(request),
            Err(error) => stream::iter([Event::Error { error }]).boxed(),
        }
    }

    /// A slot is taken only for a call that is made: a request that cannot be passed through is opened next.
    fn stream_raw(&self, request: &Arc<Request>, verbatim: &Arc<RawRequest>) -> Option<RawStream> {
        let pieces = self.upstream.stream_raw(request, verbatim)?;
        Some(match self.take() {
            Ok(()) => pieces,
            Err(error) => stream::iter([RawItem::Event(Event::Error { error })]).boxed(),
        })
    }

    fn call(&self, request: Arc<Request>) -> BoxFuture<'static, Result<UnaryResponse, Error>> {
        match self.take() {
            Ok(()) => self.upstream.call(request),
            Err(error) => std::future::ready(Err(error)).boxed(),
        }
    }

    fn supports_patches(&self) -> bool {
        self.upstream.supports_patches()
    }

    /// Takes no slot: nothing is generated, and vendors limit their count endpoint separately.
    fn count_request(&self, request: Arc<Request>) -> BoxFuture<'static, Option<u64>> {
        self.upstream.count_request(request)
    }

    fn count_tokens(&self, text: &str) -> Option<usize> {
        self.upstream.count_tokens(text)
    }
}

#[cfg(test)]
mod tests {
    use super::{RequestWindow, WINDOW};
    use std::time::Duration;
    use tokio::time::Instant;

    #[test]
    fn window_never_exceeds_twice_the_limit() {
        for per_minute in [1, 2, 7, 60, 1000] {
            let (pace, start) = (RequestWindow::new(per_minute), Instant::now());
            // One call every 10 ms for three minutes.
            let knocks = (0..18_000).map(|knock| Duration::from_millis(knock * 10));
            let taken: Vec<_> = knocks.filter(|at| pace.take(start + *at).is_ok()).collect();
            let first = taken.iter().filter(|at| **at < WINDOW).count();
            // The initial burst, and the slots freed within the minute.
            assert!(
                first >= per_minute as usize && first <= 2 * per_minute as usize,
                "{first}"
            );
            let all = taken.len() as f64 / f64::from(per_minute);
            assert!((3.0..=4.1).contains(&all), "{per_minute}: {all}");
        }
    }

    #[test]
    fn returned_wait_is_sufficient() {
        let (pace, mut now) = (RequestWindow::new(3), Instant::now());
        for _ in 0..50 {
            if let Err(wait) = pace.take(now) {
                assert!(pace.take(now + wait - Duration::from_millis(1)).is_err());
                now += wait;
                assert_eq!(pace.take(now), Ok(()));
            }
        }
    }
}
