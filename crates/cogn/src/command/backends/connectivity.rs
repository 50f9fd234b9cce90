//! Whether a server of a back-end answers and accepts its key: one request for its list of models, without a
//! request to a model.

use std::time::Duration;

use ir::{Error, ErrorKind};
use providers::HttpUpstream;
use tokio::time::{Instant, timeout};

#[derive(Debug)]
pub(crate) struct Connectivity {
    pub(crate) latency_ms: u64,
    pub(crate) models: Option<Vec<String>>,
    pub(crate) error: Option<Error>,
}

impl Connectivity {
    pub(crate) async fn of(http: &HttpUpstream, patience: Duration) -> Self {
        let started = Instant::now();
        let models = timeout(patience, http.models()).await.unwrap_or_else(|_| {
            let message = format!(
                "back-end `{}` at {}: no response within {} ms",
                http.name(),
                http.address(),
                patience.as_millis()
            );
            Err(Error::new(
                ErrorKind::Timeout,
                ir::Phase::BeforeFirstByte,
                message,
            ))
        });
        Self {
            latency_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            models: models.as_ref().ok().cloned(),
            // Not every server lists its models; these statuses show that it was reached.
            error: models
                .err()
                .filter(|error| !matches!(error.status, Some(404 | 405 | 501))),
        }
    }

    /// What was found, in one line.
    pub(crate) fn describe(&self) -> String {
        match (&self.error, &self.models) {
            (Some(error), _) => format!("{}: {} ({})", what(error), error.message, error.cognitive_code()),
            (None, Some(models)) => format!("reached in {} ms, {} models", self.latency_ms, models.len()),
            (None, None) => format!("reached in {} ms, lists no models", self.latency_ms),
        }
    }
}

fn what(error: &Error) -> &'static str {
    match error.kind {
        ErrorKind::Auth => "key rejected",
        ErrorKind::Network => "unreachable",
        ErrorKind::Timeout => "timed out",
        ErrorKind::RateLimited => "rate limit exceeded",
        ErrorKind::Quota => "quota exhausted",
        _ => "error response",
    }
}
