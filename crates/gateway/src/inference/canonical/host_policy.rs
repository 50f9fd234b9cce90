//! What a request may choose for itself. Lists of back-ends it can only narrow, which the router sees to;
//! anything else that goes beyond the host's word is taken out here, and said.

use engine::route::{HostPolicy, Policy};
use ir::adaptation::{Action, Adaptation, Ledger, Component};
use ir::{Request, RoutingHints};
use serde_json::json;

use crate::settings::Settings;
use crate::state::Gateway;

/// Where a request asks for the provider's own words.
const RAW: &str = "raw";
const RAW_PLACE: &str = "/extra/raw";

/// `streams` where the answer is told as events.
pub(super) fn apply(request: &mut Request, streams: bool, gateway: &Gateway, ledger: &mut Ledger) {
    let fleet = gateway.engine.fleet();
    bound(request, streams, fleet.host(), &gateway.settings(), ledger);
}

fn bound(request: &mut Request, streams: bool, host: &HostPolicy, settings: &Settings, ledger: &mut Ledger) {
    // A policy that starts several calls spends more than one request may.
    if let Some(Ok(policy)) = request.policy.as_ref().map(Policy::try_from)
        && policy.fans_out()
        && host.policy.as_ref() != Some(&policy)
    {
        let kept = host.policy.clone();
        let kept = kept.unwrap_or_else(|| Policy::default_for(request.operation()));
        let reason = "only the host can have several back-ends called for one request";
        let (asked, applied) = (json!(request.policy), json!(kept.spec()));
        ledger.changed("/policy", Action::Replaced, asked, applied, reason);
        request.policy = None;
    }
    if !settings.raw_answers {
        leave_raw(request, "the host does not show what providers say", ledger);
    } else if streams {
        leave_raw(request, "a stream is told in canonical events only", ledger);
    }
    if !settings.request_patches {
        let reason = "the host does not let requests change what is sent";
        leave_patches(request, reason, ledger);
    }
}

fn leave_raw(request: &mut Request, reason: &str, ledger: &mut Ledger) {
    if request.wants_raw() {
        request.extra.shift_remove(RAW);
        ledger.dropped(RAW_PLACE, reason);
    }
}

fn leave_patches(request: &mut Request, reason: &str, ledger: &mut Ledger) {
    if !request.patches.is_empty() {
        request.patches.clear();
        ledger.dropped("/patches", reason);
    }
}

/// What a module is not told, because it is the module's own to say whom it asks, how often and in which words.
pub(super) fn clear_routing(request: &mut Request, ledger: &mut Ledger) {
    leave_raw(request, "a module answers in words of its own", ledger);
    leave_patches(request, "a module says itself what is sent", ledger);
    let said = [
        ("/routing", !request.routing.is_empty()),
        ("/requirements", !request.requirements.is_empty()),
        ("/policy", request.policy.is_some()),
        ("/timeout_ms", request.timeout_ms.is_some()),
        ("/degradation", request.degradation.is_some()),
        (
            "/degradation_overrides",
            !request.degradation_overrides.is_empty(),
        ),
    ];
    for (place, _) in said.iter().filter(|(_, is_said)| *is_said) {
        ledger.dropped(*place, "a module decides this for itself");
    }
}

/// Says that an answer has no words of a provider beside it, where they were asked for and nobody has said why
/// they are missing.
pub(super) fn note_missing_raw(adaptations: &mut Vec<Adaptation>) {
    if adaptations.iter().all(|one| one.pointer != RAW_PLACE) {
        let mut ledger = Ledger::new(Component::Router);
        let reason = "the answer did not come as one document of JSON from one server";
        ledger.dropped(RAW_PLACE, reason);
        adaptations.extend(ledger.into_entries());
    }
}

/// The one back-end that an alias leads to. A request that wants another gets nobody, rather than either.
pub(super) fn pin_backend(routing: &mut RoutingHints, backend: Option<String>) {
    let Some(backend) = backend else { return };
    match &routing.backend {
        Some(own) if *own != backend => routing.backend_allowlist = Some(vec![backend]),
        _ => routing.backend = Some(backend),
    }
}

#[cfg(test)]
mod tests {
    use engine::route::{HostPolicy, Policy};
    use ir::{Ledger, Component, Request};
    use serde_json::{Value, json};

    use super::{bound, clear_routing, note_missing_raw};
    use crate::settings::Settings;

    fn read(more: &Value) -> Request {
        let mut value = json!({"operation": "embeddings", "payload": {"input": "a"}});
        for (key, one) in more.as_object().unwrap() {
            value[key] = one.clone();
        }
        serde_json::from_value(value).unwrap()
    }

    fn places(ledger: &Ledger) -> Vec<String> {
        let places = ledger.entries().iter().map(|entry| entry.pointer.clone());
        places.collect()
    }

    fn bounded(host: &HostPolicy, settings: &Settings, streams: bool, more: &Value) -> (Request, Vec<String>) {
        let mut request = read(more);
        let mut ledger = Ledger::new(Component::Router);
        bound(&mut request, streams, host, settings, &mut ledger);
        (request, places(&ledger))
    }

    fn generous() -> Settings {
        Settings {
            raw_answers: true,
            request_patches: true,
            ..Settings::default()
        }
    }

    #[test]
    fn several_calls_are_the_hosts_to_allow() {
        let hedged = json!({"policy": {"name": "hedged", "k": 2, "delay_ms": 50}});
        let settings = Settings::default();
        let (request, places) = bounded(&HostPolicy::default(), &settings, false, &hedged);
        assert!(request.policy.is_none());
        assert_eq!(places, ["/policy"]);
        let host = HostPolicy {
            policy: Some(Policy::Hedged { k: 2, delay_ms: 50 }),
            ..HostPolicy::default()
        };
        let (request, places) = bounded(&host, &settings, false, &hedged);
        assert!(request.policy.is_some() && places.is_empty());
        let mild = json!({"policy": "least_inflight"});
        let (request, places) = bounded(&HostPolicy::default(), &settings, false, &mild);
        assert!(request.policy.is_some() && places.is_empty());
    }

    #[test]
    fn the_providers_words_are_the_hosts_to_show() {
        let talk = json!({"messages": [{"role": "user", "content": "a"}]});
        for raw in [
            json!({"extra": {"raw": true}}),
            json!({"extra": {"raw": true}, "operation": "chat_completions", "payload": talk}),
        ] {
            let (request, places) = bounded(&HostPolicy::default(), &Settings::default(), false, &raw);
            assert!(!request.wants_raw());
            assert_eq!(places, ["/extra/raw"]);
            let (request, places) = bounded(&HostPolicy::default(), &generous(), false, &raw);
            assert!(request.wants_raw() && places.is_empty());
            let (request, places) = bounded(&HostPolicy::default(), &generous(), true, &raw);
            assert!(!request.wants_raw(), "a stream has none");
            assert_eq!(places, ["/extra/raw"]);
        }
    }

    #[test]
    fn what_is_sent_is_the_hosts_to_let_change() {
        let patched = json!({"patches": [{"pointer": "/top_k", "value": 1}]});
        let (request, places) = bounded(&HostPolicy::default(), &Settings::default(), false, &patched);
        assert!(request.patches.is_empty());
        assert_eq!(places, ["/patches"]);
        let (request, places) = bounded(&HostPolicy::default(), &generous(), true, &patched);
        assert!(request.patches.len() == 1 && places.is_empty());
    }

    #[test]
    fn what_a_module_is_not_told_is_said() {
        let mut ledger = Ledger::new(Component::Router);
        let mut request = read(&json!({
            "patches": [{"pointer": "/top_k", "value": 1}], "extra": {"raw": true}, "timeout_ms": 5,
            "routing": {"backend": "b"}, "degradation": "strict"
        }));
        clear_routing(&mut request, &mut ledger);
        let expected = [
            "/extra/raw",
            "/patches",
            "/routing",
            "/timeout_ms",
            "/degradation",
        ];
        assert_eq!(places(&ledger), expected);
        let mut plain = Ledger::new(Component::Router);
        clear_routing(&mut read(&json!({})), &mut plain);
        assert!(plain.entries().is_empty());
    }

    #[test]
    fn missing_words_are_named_once() {
        let mut changes = Vec::new();
        note_missing_raw(&mut changes);
        note_missing_raw(&mut changes);
        assert_eq!(changes.len(), 1);
        assert_eq!(changes[0].pointer, "/extra/raw");
    }
}
