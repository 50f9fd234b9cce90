//! A back-end that is asked at most so often in a minute. A call beyond that is not sent: it ends in the error
//! that a rate-limited server would give, with the time after which to come back, so that the router goes
//! elsewhere or waits. Several instances of one back-end share one pace.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use engine::port::{UnaryResponse, Backend, EventStream, RawStream, RawItem, Upstream, RawRequest};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use ir::{Error, ErrorKind, Event, Phase, Request};
use tokio::time::Instant;

const WINDOW: Duration = Duration::from_secs(60);

/// How many calls fit into any minute. Calls come as they like until the minute is full.
#[derive(Debug)]
pub struct RequestWindow {
    per_minute: u32,
    /// When the bucket will be empty again; the further ahead, the fuller it is.
    empty_at: Mutex<Option<Instant>>,
}

impl RequestWindow {
    pub fn new(per_minute: u32) -> Self {
        Self {
            per_minute: per_minute.max(1),
            empty_at: Mutex::default(),
        }
    }

    /// Takes a place, or says how long to wait for one.
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
    /// Takes a place, or says what a rate-limited server would say.
    fn take(&self) -> Result<(), Error> {
        let Err(wait) = self.pace.take(Instant::now()) else {
            return Ok(());
        };
        let name = &self.upstream.backend().name;
        let message = format!(
            "back-end {name} is asked at most {} times a minute",
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

    fn stream_text(&self, request: Arc<Request>) -> EventStream {
        match self.take() {
            Ok(()) => self.upstream.stream_text(request),
            Err(error) => stream::iter([Event::Error { error }]).boxed(),
        }
    }

    /// A place is taken only by a call that is made: what cannot be forwarded is opened next.
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
    fn no_minute_holds_more_than_allowed_twice_over() {
        for per_minute in [1, 2, 7, 60, 1000] {
            let (pace, start) = (RequestWindow::new(per_minute), Instant::now());
            // Somebody knocks every 10 ms for three minutes.
            let knocks = (0..18_000).map(|knock| Duration::from_millis(knock * 10));
            let taken: Vec<_> = knocks.filter(|at| pace.take(start + *at).is_ok()).collect();
            let first = taken.iter().filter(|at| **at < WINDOW).count();
            // A full bucket at once, and what flows in meanwhile.
            assert!(
                first >= per_minute as usize && first <= 2 * per_minute as usize,
                "{first}"
            );
            let all = taken.len() as f64 / f64::from(per_minute);
            assert!((3.0..=4.1).contains(&all), "{per_minute}: {all}");
        }
    }

    #[test]
    fn the_wait_that_is_told_is_enough() {
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
