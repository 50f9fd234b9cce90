//! Limits on what a request may choose. The router intersects back-end lists; everything else that exceeds
//! the host configuration is removed here and reported as an adaptation.

use engine::route::{HostPolicy, Policy};
use ir::adaptation::{Action, Adaptation, Component, Ledger};
use ir::{Request, RoutingHints};
use serde_json::json;

use crate::settings::Settings;
use crate::state::Gateway;

/// The field that requests the raw response of the provider.
const RAW: &str = "raw";
const RAW_PLACE: &str = "/extra/raw";

/// `streams` if the response is sent as events.
pub(super) fn apply(request: &mut Request, streams: bool, gateway: &Gateway, ledger: &mut Ledger) {
    let fleet = gateway.engine().fleet();
    restrict(request, streams, fleet.host(), &gateway.settings(), ledger);
}

fn restrict(
    request: &mut Request,
    streams: bool,
    host: &HostPolicy,
    settings: &Settings,
    ledger: &mut Ledger,
) {
    // A policy that starts several calls spends more than one request may.
    if let Some(Ok(policy)) = request.policy.as_ref().map(Policy::try_from)
        && policy.fans_out()
        && host.policy.as_ref() != Some(&policy)
    {
        let applied = host.policy.clone();
        let applied = applied.unwrap_or_else(|| Policy::default_for(request.operation()));
        let reason = "calling several back-ends per request is reserved for the host";
        let (requested, applied) = (json!(request.policy), json!(applied.spec()));
        ledger.changed("/policy", Action::Replaced, requested, applied, reason);
        request.policy = None;
    }
    if !settings.raw_answers {
        drop_raw(request, "raw responses are disabled on this host", ledger);
    } else if streams {
        drop_raw(request, "a stream has canonical events only", ledger);
    }
    if !settings.request_patches {
        let reason = "request patches are disabled on this host";
        drop_patches(request, reason, ledger);
    }
}

fn drop_raw(request: &mut Request, reason: &str, ledger: &mut Ledger) {
    if request.wants_raw() {
        request.extra.shift_remove(RAW);
        ledger.dropped(RAW_PLACE, reason);
    }
}

fn drop_patches(request: &mut Request, reason: &str, ledger: &mut Ledger) {
    if !request.patches.is_empty() {
        request.patches.clear();
        ledger.dropped("/patches", reason);
    }
}

/// Removes what a module determines itself: back-ends, retries and the encoding of the request.
pub(super) fn clear_routing(request: &mut Request, ledger: &mut Ledger) {
    drop_raw(request, "a module has no raw response", ledger);
    drop_patches(request, "a module determines its own requests", ledger);
    let present = [
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
    for (place, _) in present.iter().filter(|(_, is_present)| *is_present) {
        ledger.dropped(*place, "determined by the module");
    }
}

/// Reports a missing raw response, if it was requested and the reason is not reported yet.
pub(super) fn note_missing_raw(adaptations: &mut Vec<Adaptation>) {
    if adaptations.iter().all(|one| one.pointer != RAW_PLACE) {
        let mut ledger = Ledger::new(Component::Router);
        let reason = "the response was not a single JSON document from one server";
        ledger.dropped(RAW_PLACE, reason);
        adaptations.extend(ledger.into_entries());
    }
}

/// Applies the back-end of an alias. A request for another back-end gets none instead of either.
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
    use ir::{Component, Ledger, Request};
    use serde_json::{Value, json};

    use super::{clear_routing, note_missing_raw, restrict};
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

    fn restricted(
        host: &HostPolicy,
        settings: &Settings,
        streams: bool,
        more: &Value,
    ) -> (Request, Vec<String>) {
        let mut request = read(more);
        let mut ledger = Ledger::new(Component::Router);
        restrict(&mut request, streams, host, settings, &mut ledger);
        (request, places(&ledger))
    }

    fn permissive() -> Settings {
        Settings {
            raw_answers: true,
            request_patches: true,
            ..Settings::default()
        }
    }

    #[test]
    fn drops_fan_out_policy_unless_host_allows_it() {
        let hedged = json!({"policy": {"name": "hedged", "k": 2, "delay_ms": 50}});
        let settings = Settings::default();
        let (request, places) = restricted(&HostPolicy::default(), &settings, false, &hedged);
        assert!(request.policy.is_none());
        assert_eq!(places, ["/policy"]);
        let host = HostPolicy {
            policy: Some(Policy::Hedged { k: 2, delay_ms: 50 }),
            ..HostPolicy::default()
        };
        let (request, places) = restricted(&host, &settings, false, &hedged);
        assert!(request.policy.is_some() && places.is_empty());
        let single_call = json!({"policy": "least_inflight"});
        let (request, places) = restricted(&HostPolicy::default(), &settings, false, &single_call);
        assert!(request.policy.is_some() && places.is_empty());
    }

    #[test]
    fn drops_raw_unless_host_allows_it() {
        let chat = json!({"messages": [{"role": "user", "content": "a"}]});
        for raw in [
            json!({"extra": {"raw": true}}),
            json!({"extra": {"raw": true}, "operation": "chat_completions", "payload": chat}),
        ] {
            let (request, places) = restricted(&HostPolicy::default(), &Settings::default(), false, &raw);
            assert!(!request.wants_raw());
            assert_eq!(places, ["/extra/raw"]);
            let (request, places) = restricted(&HostPolicy::default(), &permissive(), false, &raw);
            assert!(request.wants_raw() && places.is_empty());
            let (request, places) = restricted(&HostPolicy::default(), &permissive(), true, &raw);
            assert!(!request.wants_raw(), "a stream has none");
            assert_eq!(places, ["/extra/raw"]);
        }
    }

    #[test]
    fn drops_patches_unless_host_allows_them() {
        let patched = json!({"patches": [{"pointer": "/top_k", "value": 1}]});
        let (request, places) = restricted(&HostPolicy::default(), &Settings::default(), false, &patched);
        assert!(request.patches.is_empty());
        assert_eq!(places, ["/patches"]);
        let (request, places) = restricted(&HostPolicy::default(), &permissive(), true, &patched);
        assert!(request.patches.len() == 1 && places.is_empty());
    }

    #[test]
    fn reports_fields_dropped_for_modules() {
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
    fn reports_missing_raw_once() {
        let mut changes = Vec::new();
        note_missing_raw(&mut changes);
        note_missing_raw(&mut changes);
        assert_eq!(changes.len(), 1);
        assert_eq!(changes[0].pointer, "/extra/raw");
    }
}
