//! Metadata of a call in response headers: run id, back-end, number of attempts, and the cost if it is known
//! in time.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use engine::RelayResponse;
use ir::{Decimal, RunId};

use crate::headers::{ATTEMPTS_HEADER, BACKEND_HEADER, COST_HEADER, RUN_HEADER};

#[derive(Clone, Debug)]
pub(super) struct CallMetadata {
    pub(super) run: RunId,
    pub(super) backend: Option<String>,
    pub(super) attempts: Option<u32>,
    pub(super) cost_usd: Option<Decimal>,
}

impl CallMetadata {
    /// The metadata known when the response starts.
    pub(super) fn of(relayed: &RelayResponse) -> Self {
        Self {
            run: relayed.run,
            backend: Some(relayed.backend.name.clone()),
            attempts: Some(relayed.attempts()),
            cost_usd: None,
        }
    }

    /// Adds an earlier call for the same response; a value that is unknown for one is unknown for both.
    pub(super) fn add(&mut self, earlier: &Self) {
        self.attempts = self.attempts.zip(earlier.attempts).map(|(own, more)| own + more);
        let costs = self.cost_usd.take().zip(earlier.cost_usd.as_ref());
        self.cost_usd = costs.and_then(|(own, more)| own.plus(more));
    }

    pub(super) fn write_headers(&self, headers: &mut HeaderMap) {
        let mut put = |name: &'static str, value: String| {
            // A name that is not a valid header value is omitted.
            if let Ok(value) = HeaderValue::from_str(&value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        };
        put(RUN_HEADER, self.run.to_string());
        if let Some(backend) = &self.backend {
            put(BACKEND_HEADER, backend.clone());
        }
        if let Some(attempts) = self.attempts {
            put(ATTEMPTS_HEADER, attempts.to_string());
        }
        if let Some(cost) = &self.cost_usd {
            put(COST_HEADER, cost.to_string());
        }
    }
}
