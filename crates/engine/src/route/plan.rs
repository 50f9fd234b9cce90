//! The route plan of one request.

use ir::envelope::{Requirements, RoutingHints};
use ir::error::{Error, ErrorKind, Phase, RoutingFailure};
use ir::operation::{Feature, Operation};
use ir::{Request, adaptation::Degradation};
use module::diagnostic::nearest;

use super::candidate::{Candidate, LoadSnapshot};
use super::explanation::Explanation;
use super::filter::{Rejection, reject};
use super::order::{affinity, best, rank};
use super::policy::{HashKey, Policy};
use super::pool::{CandidateIndex, FeatureMask};

/// The operator's restrictions. A request can narrow them, never extend them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostPolicy {
    pub policy: Option<Policy>,
    pub allowlist: Option<Vec<String>>,
    pub denylist: Option<Vec<String>>,
}

/// Inputs of a plan, borrowed from the request except for seed and turn.
#[derive(Clone, Debug)]
pub struct PlanInput<'r> {
    pub needs: &'r Requirements,
    pub hints: &'r RoutingHints,
    pub model: Option<&'r str>,
    pub region: Option<&'r str>,
    /// The required features as bits.
    pub wanted: FeatureMask<'r>,
    /// Required features that the request permits to be missing, with an adaptation.
    pub optional_features: Vec<&'r Feature>,
    /// Candidates that failed this request, by index.
    pub tried: &'r [usize],
    /// Models that refused this request.
    pub excluded_models: &'r [String],
    /// The only models that the caller may use.
    pub models: Option<&'r [String]>,
    /// The only back-end that may be used, regardless of the request.
    pub only: Option<&'r str>,
    pub policy: Policy,
    /// Breaks ties; recorded, so that the plan can be reproduced.
    pub seed: u64,
    /// Counts requests, for round-robin policies.
    pub turn: u64,
    /// Hash of the affinity key of `consistent_hash`.
    pub affinity: u64,
}

impl<'r> PlanInput<'r> {
    /// `needs` is [`Request::needs`], owned by the caller.
    ///
    /// Fails if the request names an unknown policy.
    pub fn of(request: &'r Request, needs: &'r Requirements, host: &HostPolicy) -> Result<Self, Error> {
        let is_image_request = request.operation() == Operation::ImageGeneration;
        let may_lack = needs.required_features.iter().filter(|feature| {
            let can_adapt =
                is_degradable(feature) || **feature == Feature::Tools && can_prompt_tools(request);
            match request.degradation_for(feature) {
                Degradation::Strict => false,
                Degradation::Warn => can_adapt,
                // An input image is dropped only if the request permits any degradation.
                Degradation::Allow => can_adapt || is_image_request && **feature == Feature::ImageInput,
            }
        });
        let policy = choose_policy(request, host)?;
        let affinity = match &policy {
            Policy::ConsistentHash(key) => affinity_key(*key, request),
            _ => 0,
        };
        let may_lack: Vec<&Feature> = may_lack.collect();
        Ok(Self {
            wanted: FeatureMask::new(needs.required_features.iter(), &may_lack)
                .with_optional(needs.preferred_features.iter()),
            needs,
            hints: &request.routing,
            model: request.model().filter(|model| !model.is_empty()),
            region: request
                .routing
                .region_hint
                .as_ref()
                .and_then(|hint| hint.as_str()),
            optional_features: may_lack,
            tried: &[],
            excluded_models: &[],
            models: None,
            only: None,
            policy,
            seed: 0,
            turn: 0,
            affinity,
        })
    }
}

/// Back-ends in the order in which they are tried.
#[derive(Clone, Debug, PartialEq)]
pub struct RoutePlan {
    /// Indices into the candidates; never empty.
    pub order: Vec<usize>,
    pub policy: Policy,
    pub seed: u64,
}

/// Computes the plan, or the error with the reason for each rejected back-end.
pub fn plan(
    pool: &CandidateIndex,
    signals: &[LoadSnapshot],
    facts: &PlanInput<'_>,
    host: &HostPolicy,
) -> Result<RoutePlan, Error> {
    let healthy = LoadSnapshot::default();
    let signals_of = |index: usize| signals.get(index).unwrap_or(&healthy);
    let mut places = Vec::with_capacity(pool.candidates().len());
    for one in pool.each() {
        let signals = signals_of(one.0);
        if reject(one, signals, facts, host).is_none() {
            places.push(rank(one, signals, &facts.policy, facts));
        }
    }
    if places.is_empty() {
        let mut error = no_candidate(&Explanation::of(pool, signals, facts, host), facts);
        if let Some(near) = nearest_model(pool.candidates(), facts) {
            error
                .message
                .push_str(&format!(" (did you mean the model `{near}`?)"));
        }
        return Err(error);
    }
    let order = best(places, pool.candidates(), &facts.policy, facts);
    Ok(RoutePlan {
        order: order.iter().map(|place| place.index).collect(),
        policy: facts.policy.clone(),
        seed: facts.seed,
    })
}

/// The error kind states whether any back-end could ever serve the request: a missing feature is a client
/// error, a busy or failing back-end is not.
fn no_candidate(explanation: &Explanation, facts: &PlanInput<'_>) -> Error {
    let rejections = || explanation.rejected.iter().map(|(_, rejection)| rejection);
    let (kind, message) = if explanation.rejected.is_empty() {
        (ErrorKind::NotEnabled, String::from("no back-end is configured"))
    } else if is_incapable(rejections)
        || rejections().any(is_missing_feature) && !rejections().any(is_momentary)
    {
        (
            ErrorKind::Unsupported,
            String::from("no back-end supports what this request requires"),
        )
    } else if rejections().any(is_at_limit) {
        // Some are suitable, but not at the moment.
        (
            ErrorKind::RateLimited,
            String::from("every suitable back-end is busy or rate limited"),
        )
    } else {
        (
            ErrorKind::NoCandidate,
            String::from("no back-end is eligible for this request"),
        )
    };
    let mut error = Error::new(kind, Phase::BeforeSend, message);
    let pauses = rejections().filter_map(|rejection| match rejection {
        Rejection::RateLimited(ms) => Some(*ms),
        _ => None,
    });
    error.retry_after_ms = pauses.min().filter(|_| kind == ErrorKind::RateLimited);
    error.operation = facts.needs.required_ops.iter().next().copied();
    error.search = Some(Box::new(RoutingFailure {
        required: Some(facts.needs.clone()),
        candidates_checked: explanation
            .rejected
            .iter()
            .map(|(name, _)| name.clone())
            .collect(),
        rejected_reasons: explanation
            .rejected
            .iter()
            .map(|(name, why)| (name.clone(), why.to_string()))
            .collect(),
    }));
    error
}

/// Whether each back-end that serves the model lacks something that the request requires, such as an embedding
/// model that is requested for a chat.
fn is_incapable<'a, I: Iterator<Item = &'a Rejection>>(rejections: impl Fn() -> I) -> bool {
    let serves_model = |rejection: &&Rejection| !matches!(rejection, Rejection::DifferentModel(_));
    let lacks = |rejection: &Rejection| {
        matches!(
            rejection,
            Rejection::Feature(_) | Rejection::Operation(_) | Rejection::Transport(_)
        )
    };
    rejections().any(|rejection| serves_model(&rejection)) && rejections().filter(serves_model).all(lacks)
}

/// The model with the most similar name, if no back-end serves the requested one.
fn nearest_model<'a>(candidates: &'a [Candidate], facts: &PlanInput<'_>) -> Option<&'a str> {
    let requested = facts.model?;
    let allowed = |model: &&str| {
        facts
            .models
            .is_none_or(|models| models.iter().any(|one| one == model))
    };
    let models: Option<Vec<&str>> = candidates.iter().map(|one| one.model.as_deref()).collect();
    let models = models.filter(|models| !models.contains(&requested))?;
    nearest(requested, models.into_iter().filter(allowed))
}

/// Suitable except for a missing feature.
fn is_missing_feature(rejection: &Rejection) -> bool {
    matches!(rejection, Rejection::Feature(_))
}

/// A reason that can change at any time.
fn is_momentary(rejection: &Rejection) -> bool {
    matches!(rejection, Rejection::BreakerOpen | Rejection::AlreadyTried) || is_at_limit(rejection)
}

fn is_at_limit(rejection: &Rejection) -> bool {
    matches!(rejection, Rejection::Busy(_) | Rejection::RateLimited(_))
}

/// The request's policy if the host permits it, else the host's, else the default.
pub(crate) fn choose_policy(request: &Request, host: &HostPolicy) -> Result<Policy, Error> {
    let asked = request.policy.as_ref().map(Policy::try_from).transpose();
    let asked = asked.map_err(|error| Error::invalid_request(error.to_string()))?;
    let asked = asked.filter(|policy| !policy.fans_out() || host.policy.as_ref() == Some(policy));
    Ok(asked
        .or_else(|| host.policy.clone())
        .unwrap_or_else(|| Policy::default_for(request.operation())))
}

/// Features that can be replaced by an adaptation, with lower quality and a warning.
fn is_degradable(feature: &Feature) -> bool {
    matches!(
        feature,
        Feature::Stream
            | Feature::JsonSchema
            | Feature::SystemRole
            | Feature::Seed
            | Feature::Batch
            | Feature::Timestamps
            | Feature::Diarization
            | Feature::Language
            | Feature::Voices
            | Feature::Ssml
            | Feature::Mask
            | Feature::Reasoning
    )
}

/// Whether tools can be emulated: not those that a provider executes, and not if the request requires native
/// tool calling.
fn can_prompt_tools(request: &Request) -> bool {
    let insists = request.requirements.required_features.contains(&Feature::Tools);
    let own = |tool: &ir::ToolSpec| tool.hosted.is_none();
    !insists
        && request
            .as_chat()
            .is_some_and(|chat| chat.uses_tools() && chat.tools.iter().all(own))
}

fn affinity_key(key: HashKey, request: &Request) -> u64 {
    let text = |key: &str| {
        request
            .extra
            .get(key)
            .and_then(|value| value.as_str())
            .map(String::from)
    };
    let text = match key {
        HashKey::Session => text("session_id"),
        HashKey::Task => request.task_id.clone(),
        HashKey::Prefix => request
            .as_chat()
            .and_then(|chat| chat.messages.first())
            .map(|first| first.joined_text()),
    };
    affinity(text.as_deref().unwrap_or(&request.request_id))
}
