use std::collections::{BTreeMap, BTreeSet};

use ir::envelope::{PolicySpec, Request, Requirements};
use ir::operation::{Feature, Operation};
use ir::{ChatRequest, ErrorKind, Message, ToolSpec, adaptation::Degradation};
use proptest::prelude::*;
use serde_json::json;

use super::{
    Candidate, CandidateIndex, Explanation, HashKey, HostPolicy, LoadSnapshot, PlanInput, Policy,
    PolicyError, Rejection, RoutePlan, plan,
};

fn chat(name: &str) -> Candidate {
    Candidate::new(name, "openai", Operation::ChatCompletions)
}

fn request(model: Option<&str>) -> Request {
    let chat = ChatRequest {
        model: model.map(String::from),
        messages: vec![Message::text(ir::Role::User, "hello")],
        ..ChatRequest::default()
    };
    Request::chat("req-1", chat)
}

/// Plans with a policy, a seed and a turn; returns names in order.
struct Case {
    candidates: Vec<Candidate>,
    signals: Vec<LoadSnapshot>,
    request: Request,
    host: HostPolicy,
    seed: u64,
    turn: u64,
}

impl Case {
    fn new(candidates: Vec<Candidate>, policy: Policy) -> Self {
        let host = HostPolicy {
            policy: Some(policy),
            ..HostPolicy::default()
        };
        Self {
            candidates,
            signals: Vec::new(),
            request: request(None),
            host,
            seed: 7,
            turn: 0,
        }
    }

    fn with<T>(&self, use_facts: impl FnOnce(&PlanInput<'_>) -> T) -> T {
        let needs: Requirements = self.request.needs();
        let facts = PlanInput {
            seed: self.seed,
            turn: self.turn,
            ..PlanInput::of(&self.request, &needs, &self.host).expect("the policy is known")
        };
        use_facts(&facts)
    }

    fn pool(&self) -> CandidateIndex {
        CandidateIndex::new(self.candidates.clone())
    }

    fn plan(&self) -> Result<RoutePlan, ir::Error> {
        self.with(|facts| plan(&self.pool(), &self.signals, facts, &self.host))
    }

    fn names(&self) -> Vec<&str> {
        let plan = self.plan().expect("a candidate is eligible");
        plan.order
            .iter()
            .map(|index| self.candidates[*index].name.as_str())
            .collect()
    }

    fn rejections(&self) -> BTreeMap<String, Rejection> {
        self.with(|facts| Explanation::of(&self.pool(), &self.signals, facts, &self.host))
            .rejected
            .into_iter()
            .collect()
    }
}

#[test]
fn back_end_without_model_is_eligible_with_bound_ones() {
    let mut bound = chat("bound");
    bound.model = Some(String::from("small"));
    let mut case = Case::new(vec![bound, chat("any")], Policy::Priority);
    case.request = request(Some("large"));
    assert_eq!(case.names(), ["any"]);
    assert_eq!(
        case.rejections()["bound"],
        Rejection::DifferentModel(String::from("small"))
    );
    case.request = request(Some("small"));
    assert_eq!(case.names().len(), 2);
}

#[test]
fn requested_model_is_never_replaced() {
    let mut bound = chat("bound");
    bound.model = Some(String::from("small"));
    let mut case = Case::new(vec![bound], Policy::Priority);
    case.request = request(Some("large"));
    assert_eq!(
        case.plan().expect_err("it serves another model").kind,
        ErrorKind::NoCandidate
    );
}

#[test]
fn model_without_the_operation_is_unsupported_and_names_what_is_missing() {
    let mut encoder = chat("encoder");
    encoder.model = Some(String::from("minilm"));
    encoder.operations = BTreeSet::from([Operation::Embeddings]);
    let mut other = chat("other");
    other.model = Some(String::from("small"));
    let mut case = Case::new(vec![other, encoder], Policy::Priority);
    case.request = request(Some("minilm"));
    let error = case.plan().expect_err("the model only embeds");
    assert_eq!(error.kind, ErrorKind::Unsupported);
    assert_eq!(
        error.message_with_reasons(),
        "no back-end supports what this request requires: encoder: does not support chat_completions; other: \
         serves only small"
    );
}

#[test]
fn misspelt_model_is_suggested_among_allowed_ones() {
    let mut bound = chat("bound");
    bound.model = Some(String::from("small-instruct"));
    let mut case = Case::new(vec![bound], Policy::Priority);
    case.request = request(Some("small-instrct"));
    let message = case.plan().expect_err("no such model").message;
    assert!(
        message.ends_with(" (did you mean the model `small-instruct`?)"),
        "{message}"
    );
    case.candidates.push(chat("any"));
    assert_eq!(case.names(), ["any"], "any model could be served");
}

#[test]
fn lists_apply_to_every_candidate() {
    let candidates: Vec<Candidate> = (0..2_000).map(|number| chat(&format!("b{number}"))).collect();
    let mut case = Case::new(candidates, Policy::WeightedRandom);
    case.host.denylist = Some((0..1_999).map(|number| format!("b{number}")).collect());
    assert_eq!(case.names(), ["b1999"]);
}

#[test]
fn weight_zero_gets_no_requests() {
    let mut drained = chat("drained");
    drained.weight = 0;
    for policy in [
        Policy::WeightedRandom,
        Policy::WeightedRoundRobin,
        Policy::EwmaLatency,
        Policy::RoundRobin,
    ] {
        let case = Case::new(vec![drained.clone(), chat("other")], policy);
        assert_eq!(case.names(), ["other"]);
        assert_eq!(case.rejections()["drained"], Rejection::Drained);
    }
}

#[test]
fn request_lists_only_narrow_host_lists() {
    let mut case = Case::new(vec![chat("a"), chat("b"), chat("c")], Policy::Priority);
    case.host.allowlist = Some(vec![String::from("a"), String::from("b")]);
    case.request.routing.backend_allowlist = Some(vec![String::from("b"), String::from("c")]);
    assert_eq!(case.names(), ["b"]);
    case.request.routing.backend_allowlist = None;
    case.request.routing.backend = Some(String::from("c"));
    let error = case.plan().expect_err("c is not allowed by the host");
    assert_eq!(error.kind, ErrorKind::NoCandidate);
    let search = error.search.expect("the routing failure is attached");
    assert_eq!(search.candidates_checked, ["a", "b", "c"]);
    assert_eq!(search.rejected_reasons["c"], "not on the allow-list");
}

#[test]
fn request_cannot_select_a_fan_out_policy() {
    let mut case = Case::new(vec![chat("a"), chat("b")], Policy::LeastInflight);
    case.request.policy = Some(PolicySpec::Name(String::from("hedged")));
    assert_eq!(case.plan().expect("it plans").policy, Policy::LeastInflight);
    case.request.policy = Some(PolicySpec::Name(String::from("round_robin")));
    assert_eq!(case.plan().expect("it plans").policy, Policy::RoundRobin);
}

#[test]
fn preference_ranks_before_priority() {
    let mut low = chat("low");
    low.priority = -1;
    let mut high = chat("high");
    high.priority = 10;
    let mut case = Case::new(vec![low, chat("middle"), high], Policy::RoundRobin);
    assert_eq!(case.names(), ["high", "middle", "low"]);
    case.request.requirements.preferred_backends = vec![String::from("low")];
    assert_eq!(case.names(), ["low", "high", "middle"]);
}

#[test]
fn missing_feature_and_missing_back_end_have_different_errors() {
    let mut case = Case::new(vec![chat("blind")], Policy::Priority);
    case.request.requirements.required_features = BTreeSet::from([Feature::ImageInput]);
    let error = case.plan().expect_err("no candidate has image input");
    assert_eq!(
        (error.kind, error.cognitive_code()),
        (ErrorKind::Unsupported, "E4011")
    );
    case.signals = vec![LoadSnapshot {
        tripped: true,
        ..LoadSnapshot::default()
    }];
    case.request.requirements.required_features.clear();
    assert_eq!(
        case.plan().expect_err("the breaker is open").kind,
        ErrorKind::NoCandidate
    );
    case.candidates.clear();
    assert_eq!(
        case.plan().expect_err("there are no candidates").kind,
        ErrorKind::NotEnabled
    );
}

#[test]
fn optional_features_affect_order_not_eligibility() {
    let mut able = chat("able");
    able.features = BTreeSet::from([Feature::JsonSchema]);
    let mut case = Case::new(vec![chat("plain"), able], Policy::Priority);
    case.request.requirements.required_features = BTreeSet::from([Feature::JsonSchema]);
    case.request.degradation = Some(Degradation::Warn);
    assert_eq!(case.names(), ["able", "plain"]);
    case.request.degradation = Some(Degradation::Strict);
    assert_eq!(case.names(), ["able"]);
}

#[test]
fn tools_are_optional_unless_required() {
    let mut able = chat("able");
    able.features = BTreeSet::from([Feature::Tools]);
    let mut case = Case::new(vec![chat("plain"), able], Policy::Priority);
    let with = |tools: Vec<ToolSpec>| {
        let chat = ChatRequest {
            messages: vec![Message::text(ir::Role::User, "hello")],
            tools,
            ..ChatRequest::default()
        };
        Request::chat("req-1", chat)
    };
    let own = ToolSpec {
        name: String::from("weather"),
        ..ToolSpec::default()
    };
    case.request = with(vec![own.clone()]);
    assert_eq!(case.names(), ["able", "plain"]);
    case.request.degradation = Some(Degradation::Strict);
    assert_eq!(case.names(), ["able"]);
    case.request.degradation = None;
    case.request.requirements.required_features = BTreeSet::from([Feature::Tools]);
    assert_eq!(case.names(), ["able"], "native tools were required");
    let hosted = ToolSpec::hosted(ir::Dialect::OpenaiResponses, json!({"type": "web_search"}));
    case.request = with(vec![own, hosted]);
    assert_eq!(case.names(), ["able"], "only the provider executes its tools");
}

#[test]
fn preferred_features_rank_equals_and_exclude_none() {
    let mut able = chat("able");
    able.features = able_features();
    let mut half = chat("half");
    half.features = BTreeSet::from([Feature::LongContext]);
    let mut case = Case::new(vec![chat("plain"), half, able], Policy::Priority);
    case.request.requirements.preferred_features = able_features();
    case.request.degradation = Some(Degradation::Strict);
    assert_eq!(case.names(), ["able", "half", "plain"]);
    let explained = case.with(|facts| Explanation::of(&case.pool(), &[], facts, &case.host));
    assert_eq!(explained.selected[1].lacks, ["supports_image_input"]);
    // Configured priority ranks first.
    case.candidates[0].priority = 1;
    assert_eq!(case.names(), ["plain", "able", "half"]);
}

fn able_features() -> BTreeSet<Feature> {
    BTreeSet::from([Feature::ImageInput, Feature::LongContext])
}

#[test]
fn weighted_round_robin_is_exact_and_spread() {
    let weights = [("a", 5), ("b", 3), ("c", 2)];
    let candidates = weights.map(|(name, weight)| {
        let mut candidate = chat(name);
        candidate.weight = weight;
        candidate
    });
    let mut case = Case::new(candidates.to_vec(), Policy::WeightedRoundRobin);
    let mut firsts = Vec::new();
    for turn in 0..20 {
        case.turn = turn;
        firsts.push(String::from(case.names()[0]));
    }
    for (name, weight) in weights {
        assert_eq!(
            firsts.iter().filter(|first| *first == name).count(),
            2 * weight as usize,
            "{firsts:?}"
        );
    }
    let longest = firsts.chunk_by(|a, b| a == b).map(<[String]>::len).max();
    assert!(longest <= Some(2), "{firsts:?}");
}

#[test]
fn weighted_random_follows_the_weights() {
    let mut heavy = chat("heavy");
    heavy.weight = 300;
    let mut case = Case::new(vec![heavy, chat("light")], Policy::WeightedRandom);
    let mut hits = 0;
    for seed in 0..4_000 {
        case.seed = seed;
        hits += u32::from(case.names()[0] == "heavy");
    }
    assert!(
        (2_850..3_150).contains(&hits),
        "{hits} of 4000, expected about 3000"
    );
}

#[test]
fn removing_a_back_end_moves_only_its_keys() {
    let names = ["a", "b", "c", "d", "e"];
    let mut case = Case::new(names.map(chat).to_vec(), Policy::ConsistentHash(HashKey::Task));
    let mut fewer = Case::new(
        names[..4].iter().map(|name| chat(name)).collect(),
        Policy::ConsistentHash(HashKey::Task),
    );
    let mut met = BTreeSet::new();
    for task in 0..300 {
        let key = Some(format!("task-{task}"));
        case.request.task_id.clone_from(&key);
        fewer.request.task_id = key;
        let home = String::from(case.names()[0]);
        if home != "e" {
            assert_eq!(fewer.names()[0], home);
        }
        met.insert(home);
    }
    assert_eq!(met.len(), names.len());
}

#[test]
fn latency_and_load_decide_under_ewma() {
    let mut case = Case::new(vec![chat("slow"), chat("fast")], Policy::EwmaLatency);
    let latency = |latency_ms, inflight| LoadSnapshot {
        latency_ms: Some(latency_ms),
        inflight,
        ..LoadSnapshot::default()
    };
    case.signals = vec![latency(400.0, 0), latency(100.0, 0)];
    assert_eq!(case.names(), ["fast", "slow"]);
    case.signals = vec![latency(400.0, 0), latency(100.0, 9)];
    assert_eq!(case.names(), ["slow", "fast"]);
}

#[test]
fn policy_specs_are_parsed_or_refused() {
    let read = |value| Policy::try_from(&serde_json::from_value::<PolicySpec>(value).expect("a policy"));
    assert_eq!(read(json!("cost")), Ok(Policy::Cost));
    assert_eq!(
        read(json!({"name": "hedged", "k": 3, "delay_ms": 20})),
        Ok(Policy::Hedged { k: 3, delay_ms: 20 })
    );
    assert_eq!(
        read(json!({"name": "consistent_hash", "key": "prefix"})),
        Ok(Policy::ConsistentHash(HashKey::Prefix))
    );
    assert!(matches!(read(json!("fastest")), Err(PolicyError::Unknown { .. })));
    assert!(matches!(read(json!("mirror")), Err(PolicyError::Missing { .. })));
    assert!(matches!(
        read(json!({"name": "hedged", "k": 1})),
        Err(PolicyError::Invalid { .. })
    ));
}

fn any_candidate() -> impl Strategy<Value = Candidate> {
    (
        0u32..40,
        0u32..3,
        -1i32..2,
        any::<bool>(),
        proptest::option::of(0usize..3),
    )
        .prop_map(|(number, weight, priority, able, model)| {
            let mut candidate = chat(&format!("b{number}"));
            candidate.weight = weight;
            candidate.priority = priority;
            candidate.model = model.map(|model| format!("m{model}"));
            if able {
                candidate.features.insert(Feature::Tools);
            }
            candidate
        })
}

fn any_policy() -> impl Strategy<Value = Policy> {
    prop_oneof![
        Just(Policy::RoundRobin),
        Just(Policy::WeightedRoundRobin),
        Just(Policy::WeightedRandom),
        Just(Policy::LeastInflight),
        Just(Policy::EwmaLatency),
        Just(Policy::ConsistentHash(HashKey::Session)),
        Just(Policy::Priority),
        Just(Policy::Cost),
        Just(Policy::Hedged { k: 2, delay_ms: 50 }),
    ]
}

proptest! {
    #[test]
    fn every_candidate_is_planned_or_has_a_reason(
        mut candidates in proptest::collection::vec(any_candidate(), 1..20),
        policy in any_policy(),
        seed: u64,
        turn: u64,
    ) {
        candidates.dedup_by(|a, b| a.name == b.name);
        candidates.sort_by(|a, b| a.name.cmp(&b.name));
        candidates.dedup_by(|a, b| a.name == b.name);
        let mut case = Case::new(candidates, policy);
        case.request = request(Some("m1"));
        case.request.requirements.required_features = BTreeSet::from([Feature::Tools]);
        case.seed = seed;
        case.turn = turn;
        let rejected = case.rejections();
        match case.plan() {
            Ok(plan) => {
                prop_assert_eq!(&plan, &case.plan().expect("the same again"));
                for index in &plan.order {
                    prop_assert!(!rejected.contains_key(&case.candidates[*index].name));
                }
                let eligible = case.candidates.len() - rejected.len();
                prop_assert_eq!(plan.order.len(), eligible.min(crate::limits::ATTEMPTS_MAX as usize));
                let unique: BTreeSet<_> = plan.order.iter().collect();
                prop_assert_eq!(unique.len(), plan.order.len());
            }
            Err(_) => prop_assert_eq!(rejected.len(), case.candidates.len()),
        }
    }
}
