//! `[auth]`, `[limits]`, `[store]` and `[journal]`: authentication, capacity, storage and retention of a server.

use std::time::Duration;

use engine::retention::RetentionPolicy;
use gateway::Capacity;
use serde::Deserialize;
use store::Durability;
use tenancy::limit::Rate;

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Auth {
    /// Requests without credentials are rejected.
    pub(crate) required: bool,
    pub(crate) jwt: Option<Jwt>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Jwt {
    /// A file, or an https URL.
    pub(crate) jwks: String,
    pub(crate) issuer: String,
    pub(crate) audience: String,
    pub(crate) algorithms: Vec<String>,
    #[serde(default = "usual_tenant_claim")]
    pub(crate) tenant_claim: String,
    #[serde(default = "usual_scope_claim")]
    pub(crate) scope_claim: String,
    #[serde(default = "usual_leeway_ms")]
    pub(crate) leeway_ms: u64,
    /// The limits of each caller with a token.
    pub(crate) rate: Option<Rate>,
    pub(crate) concurrency: Option<u32>,
}

fn usual_tenant_claim() -> String {
    String::from("tenant")
}

fn usual_scope_claim() -> String {
    String::from("scope")
}

fn usual_leeway_ms() -> u64 {
    30_000
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Limits {
    pub(crate) runs_max: usize,
    pub(crate) queue_max: usize,
    pub(crate) queue_wait_ms: u64,
}

impl Limits {
    pub(crate) fn capacity(self) -> Capacity {
        Capacity {
            runs_max: self.runs_max,
            queue_max: self.queue_max,
            queue_wait: Duration::from_millis(self.queue_wait_ms),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Journal {
    pub(crate) keep_days: u64,
    pub(crate) keep_bytes: u64,
    pub(crate) keep_usage_days: u64,
    /// Size limit of the file.
    pub(crate) bytes_max: Option<u64>,
    pub(crate) durability: Durability,
}

impl Journal {
    pub(crate) fn keep(self) -> RetentionPolicy {
        RetentionPolicy {
            runs_ms: self.keep_days.saturating_mul(DAY_MS),
            bytes_max: self.keep_bytes,
            usage_ms: self.keep_usage_days.saturating_mul(DAY_MS),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Store {
    /// The address of the database; a relative path is relative to the data folder.
    pub(crate) metadata: Option<String>,
}
