//! Eligibility of candidates. A rejection has one reason, the first that applies, cheapest check first.

use std::fmt;

use ir::operation::{Feature, Operation, Transport};

use super::candidate::{Candidate, LoadSnapshot};
use super::plan::{HostPolicy, PlanInput};
use super::policy::Policy;
use super::pool::CandidateKey;

/// Why a candidate is not eligible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    Unavailable(String),
    Drained,
    Operation(Operation),
    Feature(Feature),
    Transport(Transport),
    NotAllowed,
    Denied,
    NotRequested,
    DifferentModel(String),
    BreakerOpen,
    Busy(u32),
    AlreadyTried,
    ModelRefused(String),
    RateLimited(u64),
    MirrorOnly,
    ModelNotAllowed,
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unavailable(reason) => write!(f, "unavailable: {reason}"),
            Self::Drained => f.write_str("out of service (weight 0)"),
            Self::Operation(operation) => write!(f, "does not support {}", operation.as_str()),
            Self::Feature(feature) => write!(f, "lacks {feature}"),
            Self::Transport(transport) => write!(f, "cannot be reached over {transport}"),
            Self::NotAllowed => f.write_str("not on the allow-list"),
            Self::Denied => f.write_str("on the deny-list"),
            Self::NotRequested => f.write_str("the request names another back-end"),
            Self::DifferentModel(model) => write!(f, "serves only {model}"),
            Self::BreakerOpen => f.write_str("its last calls failed (breaker open)"),
            Self::Busy(limit) => write!(f, "{limit} calls already in flight"),
            Self::AlreadyTried => f.write_str("already tried for this request"),
            Self::ModelRefused(model) => write!(f, "{model} refused this request on another back-end"),
            Self::RateLimited(ms) => write!(f, "rate limited for {ms} ms"),
            Self::ModelNotAllowed => f.write_str("its model is not allowed for this caller"),
            Self::MirrorOnly => f.write_str("receives mirror copies only"),
        }
    }
}

pub(super) fn reject(
    (index, candidate, marks): (usize, &Candidate, &CandidateKey),
    signals: &LoadSnapshot,
    facts: &PlanInput<'_>,
    host: &HostPolicy,
) -> Option<Rejection> {
    fixed(candidate, marks, facts)
        .or_else(|| listed(candidate, facts, host))
        .or_else(|| momentary(index, candidate, signals, facts))
}

/// Reasons that do not change over time.
fn fixed(candidate: &Candidate, marks: &CandidateKey, facts: &PlanInput<'_>) -> Option<Rejection> {
    if let Some(reason) = &candidate.unavailable {
        return Some(Rejection::Unavailable(reason.clone()));
    }
    // Before the other requirements: what a back-end lacks is not relevant if it does not serve the model. A
    // back-end without a configured model serves any.
    if let (Some(own), Some(asked)) = (&candidate.model, facts.model)
        && own != asked
    {
        return Some(Rejection::DifferentModel(own.clone()));
    }
    let needs = facts.needs;
    let operation = needs
        .required_ops
        .iter()
        .find(|operation| !candidate.operations.contains(operation));
    if let Some(operation) = operation {
        return Some(Rejection::Operation(*operation));
    }
    let lacking = |feature: &&Feature| {
        !candidate.features.contains(feature) && !facts.optional_features.contains(feature)
    };
    if !facts.wanted.is_met(candidate, marks)
        && let Some(feature) = needs.required_features.iter().find(lacking)
    {
        return Some(Rejection::Feature(feature.clone()));
    }
    let unreachable = needs
        .required_transports
        .iter()
        .find(|way| !candidate.transports.contains(way));
    unreachable.map(|transport| Rejection::Transport(transport.clone()))
}

/// The host's lists are binding; the request's can only narrow them.
fn listed(candidate: &Candidate, facts: &PlanInput<'_>, host: &HostPolicy) -> Option<Rejection> {
    let name = &candidate.name;
    let hints = facts.hints;
    let allowed = |list: &Option<Vec<String>>| list.as_ref().is_none_or(|list| list.contains(name));
    let denied = |list: &Option<Vec<String>>| list.as_ref().is_some_and(|list| list.contains(name));
    if denied(&host.denylist) || denied(&hints.backend_denylist) {
        return Some(Rejection::Denied);
    }
    if !allowed(&host.allowlist) || !allowed(&hints.backend_allowlist) {
        return Some(Rejection::NotAllowed);
    }
    // An unnamed model could be any.
    let model = candidate.model.as_deref().or(facts.model);
    let allowed = |models: &[String]| model.is_some_and(|model| models.iter().any(|one| one == model));
    if facts.models.is_some_and(|models| !allowed(models)) {
        return Some(Rejection::ModelNotAllowed);
    }
    let another = |wanted: Option<&str>| wanted.is_some_and(|wanted| wanted != name);
    if another(hints.backend.as_deref()) || another(facts.only) {
        return Some(Rejection::NotRequested);
    }
    match &facts.policy {
        Policy::Mirror { to } if to == name => Some(Rejection::MirrorOnly),
        _ => None,
    }
}

/// Reasons that can change at any time.
fn momentary(
    index: usize,
    candidate: &Candidate,
    signals: &LoadSnapshot,
    facts: &PlanInput<'_>,
) -> Option<Rejection> {
    if candidate.weight == 0 {
        return Some(Rejection::Drained);
    }
    if facts.tried.contains(&index) {
        return Some(Rejection::AlreadyTried);
    }
    let model = candidate.model.as_deref().or(facts.model);
    if let Some(model) = model.filter(|model| facts.excluded_models.iter().any(|other| other == model)) {
        return Some(Rejection::ModelRefused(String::from(model)));
    }
    if signals.tripped {
        return Some(Rejection::BreakerOpen);
    }
    if signals.limited_ms > 0 {
        return Some(Rejection::RateLimited(signals.limited_ms));
    }
    candidate
        .inflight_max
        .filter(|limit| signals.inflight >= *limit)
        .map(Rejection::Busy)
}
