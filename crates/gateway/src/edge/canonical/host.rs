//! What a request may choose for itself. Lists of back-ends it can only narrow, which the router sees to;
//! anything else that goes beyond the host's word is taken out here, and said.

use engine::route::{Host, Policy};
use ir::adaptation::{Action, Ledger};
use ir::{Payload, Request, RoutingHints};
use serde_json::json;

use crate::state::Gateway;

/// Where a request asks for the provider's own words.
const RAW: &str = "raw";

pub(super) fn narrow(request: &mut Request, gateway: &Gateway, ledger: &mut Ledger) {
    let fleet = gateway.engine.fleet();
    bound(request, fleet.host(), gateway.settings().raw_answers, ledger);
}

fn bound(request: &mut Request, host: &Host, raw_answers: bool, ledger: &mut Ledger) {
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
    if request.wants_raw() {
        let reason = match &request.payload {
            Payload::Chat(_) => Some("a conversation is kept in canonical form only"),
            _ => (!raw_answers).then_some("the host does not show what providers say"),
        };
        if let Some(reason) = reason {
            request.extra.shift_remove(RAW);
            ledger.dropped("/extra/raw", reason);
        }
    }
    if !request.patches.is_empty() {
        request.patches.clear();
        ledger.dropped("/patches", "the host does not let requests change what is sent");
    }
}

/// The one back-end that an alias leads to. A request that wants another gets nobody, rather than either.
pub(super) fn pin(routing: &mut RoutingHints, backend: Option<String>) {
    let Some(backend) = backend else { return };
    match &routing.backend {
        Some(own) if *own != backend => routing.backend_allowlist = Some(vec![backend]),
        _ => routing.backend = Some(backend),
    }
}

#[cfg(test)]
mod tests {
    use engine::route::{Host, Policy};
    use ir::{Ledger, Party, Request};
    use serde_json::{Value, json};

    use super::bound;

    fn bounded(host: &Host, raw: bool, more: &Value) -> (Request, Vec<String>) {
        let mut value = json!({"operation": "embeddings", "payload": {"input": "a"}});
        for (key, one) in more.as_object().unwrap() {
            value[key] = one.clone();
        }
        let mut request: Request = serde_json::from_value(value).unwrap();
        let mut ledger = Ledger::new(Party::Router);
        bound(&mut request, host, raw, &mut ledger);
        let places = ledger.entries().iter().map(|entry| entry.pointer.clone());
        (request, places.collect())
    }

    #[test]
    fn several_calls_are_the_hosts_to_allow() {
        let hedged = json!({"policy": {"name": "hedged", "k": 2, "delay_ms": 50}});
        let (request, places) = bounded(&Host::default(), false, &hedged);
        assert!(request.policy.is_none());
        assert_eq!(places, ["/policy"]);
        let host = Host {
            policy: Some(Policy::Hedged { k: 2, delay_ms: 50 }),
            ..Host::default()
        };
        let (request, places) = bounded(&host, false, &hedged);
        assert!(request.policy.is_some() && places.is_empty());
        let (request, places) = bounded(&Host::default(), false, &json!({"policy": "least_inflight"}));
        assert!(request.policy.is_some() && places.is_empty());
    }

    #[test]
    fn the_providers_words_are_the_hosts_to_show() {
        let raw = json!({"extra": {"raw": true}});
        let (request, places) = bounded(&Host::default(), false, &raw);
        assert!(!request.wants_raw());
        assert_eq!(places, ["/extra/raw"]);
        let (request, places) = bounded(&Host::default(), true, &raw);
        assert!(request.wants_raw() && places.is_empty());
    }
}
