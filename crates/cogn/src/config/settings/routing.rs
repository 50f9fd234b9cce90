//! `[routing]`: which back-ends are called, and in which order.

use engine::fleet;
use engine::route::{HostPolicy, Policy};
use ir::envelope::PolicySpec;
use serde::Deserialize;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Routing {
    /// A name, or a table of name and arguments.
    pub(crate) policy: Option<PolicySpec>,
    pub(crate) allow: Option<Vec<String>>,
    pub(crate) deny: Option<Vec<String>>,
    retry: Retry,
    breaker: BreakerSettings,
    hedge: Hedge,
}

/// Retries. Missing values use the defaults of the engine; the same applies to the types below.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Retry {
    attempts_max: Option<u32>,
    same_backend_max: Option<u32>,
    backoff_ms: Option<u64>,
    backoff_max_ms: Option<u64>,
    budget_ratio: Option<f64>,
    budget_min: Option<f64>,
}

/// The circuit breaker.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct BreakerSettings {
    failures: Option<u32>,
    failure_ratio: Option<f64>,
    open_ms: Option<u64>,
    open_max_ms: Option<u64>,
}

/// The budget of hedged calls.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Hedge {
    budget_ratio: Option<f64>,
    budget_min: Option<f64>,
    quantile: Option<f64>,
}

impl Routing {
    /// The policy of the operator.
    pub(crate) fn host(&self) -> Result<HostPolicy, engine::route::PolicyError> {
        Ok(HostPolicy {
            policy: self.policy.as_ref().map(Policy::try_from).transpose()?,
            allowlist: self.allow.clone(),
            denylist: self.deny.clone(),
        })
    }

    /// How the fleet handles back-ends that fail or are slow.
    pub(crate) fn fleet(&self, timeouts: fleet::Timeouts) -> fleet::Settings {
        let usual = fleet::Settings::default();
        let (retry, breaker, hedge) = (self.retry, self.breaker, self.hedge);
        fleet::Settings {
            timeouts,
            retry: fleet::Retry {
                attempts_max: retry.attempts_max.unwrap_or(usual.retry.attempts_max),
                same_max: retry.same_backend_max.unwrap_or(usual.retry.same_max),
                backoff_ms: retry.backoff_ms.unwrap_or(usual.retry.backoff_ms),
                backoff_max_ms: retry.backoff_max_ms.unwrap_or(usual.retry.backoff_max_ms),
                share: retry.budget_ratio.unwrap_or(usual.retry.share),
                reserve: retry.budget_min.unwrap_or(usual.retry.reserve),
            },
            breaker: fleet::Breaker {
                failures: breaker.failures.unwrap_or(usual.breaker.failures),
                failure_share: breaker.failure_ratio.unwrap_or(usual.breaker.failure_share),
                open_ms: breaker.open_ms.unwrap_or(usual.breaker.open_ms),
                open_max_ms: breaker.open_max_ms.unwrap_or(usual.breaker.open_max_ms),
            },
            hedge: fleet::Hedge {
                share: hedge.budget_ratio.unwrap_or(usual.hedge.share),
                reserve: hedge.budget_min.unwrap_or(usual.hedge.reserve),
                quantile: hedge.quantile.unwrap_or(usual.hedge.quantile),
            },
        }
    }
}
