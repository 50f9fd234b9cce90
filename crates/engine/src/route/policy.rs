//! Policies that select one of several eligible back-ends.

use ir::envelope::PolicySpec;
use ir::operation::Operation;
use serde_json::{Value, json};

/// A policy with its arguments. Policies that start more than one call are available only if the host
/// configures them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Policy {
    RoundRobin,
    WeightedRoundRobin,
    WeightedRandom,
    LeastInflight,
    EwmaLatency,
    ConsistentHash(HashKey),
    Priority,
    Cost,
    /// Start the next call after `delay_ms` without a first token, up to `k` in parallel; the first with
    /// output is used.
    Hedged {
        k: u32,
        delay_ms: u64,
    },
    /// A copy is sent to another back-end; its answer is recorded, never returned.
    Mirror {
        to: String,
    },
}

/// The affinity key of `consistent_hash`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HashKey {
    Session,
    Task,
    /// The start of the prompt, so that prompt caches stay warm.
    Prefix,
}

impl HashKey {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session_id",
            Self::Task => "task_id",
            Self::Prefix => "prefix",
        }
    }
}

/// An invalid policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    #[error("unknown routing policy `{name}`; known: {known}", known = NAMES.join(", "))]
    Unknown { name: String },
    #[error("routing policy `{policy}` needs `{argument}`")]
    Missing {
        policy: &'static str,
        argument: &'static str,
    },
    #[error("routing policy `{policy}` does not accept `{argument}` = {value}")]
    Invalid {
        policy: &'static str,
        argument: &'static str,
        value: String,
    },
}

const NAMES: [&str; 10] = [
    "round_robin",
    "weighted_round_robin",
    "weighted_random",
    "least_inflight",
    "ewma_latency",
    "consistent_hash",
    "priority",
    "cost",
    "hedged",
    "mirror",
];

const HEDGE_K_MAX: u64 = 8;
const HEDGE_DELAY_MS: u64 = 50;

impl Policy {
    /// The default where no policy is configured.
    pub fn default_for(operation: Operation) -> Self {
        match operation {
            Operation::ChatCompletions => Self::EwmaLatency,
            Operation::Embeddings | Operation::TextToSpeech => Self::WeightedRoundRobin,
            Operation::ImageGeneration => Self::Priority,
            Operation::SpeechToText | Operation::RealtimeVoice => Self::LeastInflight,
        }
    }

    pub fn name(&self) -> &'static str {
        match self {
            Self::RoundRobin => "round_robin",
            Self::WeightedRoundRobin => "weighted_round_robin",
            Self::WeightedRandom => "weighted_random",
            Self::LeastInflight => "least_inflight",
            Self::EwmaLatency => "ewma_latency",
            Self::ConsistentHash(_) => "consistent_hash",
            Self::Priority => "priority",
            Self::Cost => "cost",
            Self::Hedged { .. } => "hedged",
            Self::Mirror { .. } => "mirror",
        }
    }

    /// As written in requests and configuration.
    pub fn spec(&self) -> PolicySpec {
        let name = String::from(self.name());
        let arguments = match self {
            Self::ConsistentHash(key) => json!({"key": key.as_str()}),
            Self::Hedged { k, delay_ms } => json!({"k": k, "delay_ms": delay_ms}),
            Self::Mirror { to } => json!({"mirror_to": to}),
            _ => return PolicySpec::Name(name),
        };
        match arguments {
            Value::Object(arguments) => PolicySpec::With { name, arguments },
            _ => PolicySpec::Name(name),
        }
    }

    /// Whether it starts more than one call: a request may not select such a policy by itself.
    pub fn fans_out(&self) -> bool {
        matches!(self, Self::Hedged { .. } | Self::Mirror { .. })
    }
}

impl TryFrom<&PolicySpec> for Policy {
    type Error = PolicyError;

    fn try_from(spec: &PolicySpec) -> Result<Self, PolicyError> {
        let argument = |name: &str| match spec {
            PolicySpec::Name(_) => None,
            PolicySpec::With { arguments, .. } => arguments.get(name),
        };
        Ok(match spec.name() {
            "round_robin" => Self::RoundRobin,
            "weighted_round_robin" => Self::WeightedRoundRobin,
            "weighted_random" => Self::WeightedRandom,
            "least_inflight" => Self::LeastInflight,
            "ewma_latency" => Self::EwmaLatency,
            "consistent_hash" => Self::ConsistentHash(hash_key(argument("key"))?),
            "priority" => Self::Priority,
            "cost" => Self::Cost,
            "hedged" => hedged(argument("k"), argument("delay_ms"))?,
            "mirror" => {
                let to = argument("mirror_to").and_then(Value::as_str);
                let to = to.ok_or(PolicyError::Missing {
                    policy: "mirror",
                    argument: "mirror_to",
                })?;
                Self::Mirror { to: String::from(to) }
            }
            unknown => {
                return Err(PolicyError::Unknown {
                    name: String::from(unknown),
                });
            }
        })
    }
}

fn hash_key(value: Option<&Value>) -> Result<HashKey, PolicyError> {
    match value.map(|value| value.as_str().unwrap_or_default()) {
        None | Some("session" | "session_id") => Ok(HashKey::Session),
        Some("task" | "task_id") => Ok(HashKey::Task),
        Some("prefix") => Ok(HashKey::Prefix),
        Some(other) => {
            let value = String::from(other);
            Err(PolicyError::Invalid {
                policy: "consistent_hash",
                argument: "key",
                value,
            })
        }
    }
}

fn hedged(k: Option<&Value>, delay_ms: Option<&Value>) -> Result<Policy, PolicyError> {
    let invalid = |argument, value: &Value| PolicyError::Invalid {
        policy: "hedged",
        argument,
        value: value.to_string(),
    };
    let k = match k {
        None => 2,
        Some(value) => match value.as_u64() {
            Some(k @ 2..=HEDGE_K_MAX) => k as u32,
            _ => return Err(invalid("k", value)),
        },
    };
    let delay_ms = match delay_ms {
        None => HEDGE_DELAY_MS,
        Some(value) => value.as_u64().ok_or_else(|| invalid("delay_ms", value))?,
    };
    Ok(Policy::Hedged { k, delay_ms })
}
