use serde_json::{Value, json};

use super::{Claims, TokenError, TokenRules};
use crate::scope::Scope;

fn rules() -> TokenRules {
    TokenRules {
        issuer: String::from("https://id.example"),
        audience: String::from("cogn"),
        tenant_claim: String::from("tenant"),
        scope_claim: String::from("scope"),
        leeway_ms: 0,
        rate: None,
        concurrency: None,
    }
}

/// Quotas, usage and idempotency keys are counted by client name.
#[test]
fn callers_of_two_tenants_have_two_names() {
    let name = |tenant: &str, subject: &str| {
        let claims = claims(|claims| {
            claims["tenant"] = json!(tenant);
            claims["sub"] = json!(subject);
        });
        claims.caller(&rules(), 50_000).expect("valid claims").client
    };
    let names = [
        name("acme", "alice"),
        name("other", "alice"),
        name("a/b", "c"),
        name("a", "b/c"),
        name("a%2Fb", "c"),
    ];
    let distinct: std::collections::BTreeSet<_> = names.iter().collect();
    assert_eq!(distinct.len(), names.len(), "{names:?}");
}

#[test]
fn callers_with_tokens_have_the_configured_limits() {
    let rules = TokenRules {
        rate: "5/m".parse().ok(),
        concurrency: Some(2),
        ..rules()
    };
    let caller = claims(|_| ()).caller(&rules, 50_000).expect("valid claims");
    assert_eq!(caller.rate.map(|rate| rate.to_string()).as_deref(), Some("5/m"));
    assert_eq!(caller.concurrency, Some(2));
}

fn claims(change: impl FnOnce(&mut Value)) -> Claims {
    let mut value = json!({
        "iss": "https://id.example", "aud": ["other", "cogn"], "sub": "u1", "exp": 100, "nbf": 10,
        "tenant": "acme", "scope": "read openid execute",
    });
    change(&mut value);
    match value {
        Value::Object(map) => Claims(map),
        _ => unreachable!("an object stays one"),
    }
}

#[test]
fn valid_claims_give_caller_with_known_scopes() {
    let caller = claims(|_| ()).caller(&rules(), 50_000).expect("valid claims");
    assert_eq!(
        (caller.tenant.as_str(), caller.client.as_str()),
        ("acme", "jwt:acme/u1")
    );
    assert!(caller.scopes.contains(Scope::Read) && caller.scopes.contains(Scope::Execute));
    assert!(!caller.scopes.contains(Scope::Review));
    let list = claims(|claims| claims["scope"] = json!(["usage"]));
    assert!(
        list.caller(&rules(), 50_000)
            .expect("valid claims")
            .scopes
            .contains(Scope::Usage)
    );
}

#[test]
fn expiry_and_not_before_respect_leeway() {
    let mut rules = rules();
    for (now_ms, leeway_ms, expected) in [
        (9_999, 0, Err(TokenError::TooEarly)),
        (10_000, 0, Ok(())),
        (99_999, 0, Ok(())),
        (100_000, 0, Err(TokenError::Expired)),
        (9_000, 1_000, Ok(())),
        (100_999, 1_000, Ok(())),
        (101_000, 1_000, Err(TokenError::Expired)),
    ] {
        rules.leeway_ms = leeway_ms;
        assert_eq!(
            claims(|_| ()).caller(&rules, now_ms).map(drop),
            expected,
            "{now_ms}"
        );
    }
}

#[test]
fn missing_or_mismatching_claim_is_refused() {
    let wrong: [(&str, Value); 10] = [
        ("exp", Value::Null),
        ("exp", json!("100")),
        ("exp", json!(-1)),
        ("nbf", json!("soon")),
        ("iss", json!("https://id.example.evil")),
        ("aud", json!("cogn2")),
        ("aud", json!([])),
        ("sub", json!("")),
        ("tenant", json!(7)),
        ("scope", Value::Null),
    ];
    for (name, value) in wrong {
        let claims = claims(|claims| {
            if value.is_null() {
                claims.as_object_mut().expect("an object").remove(name);
            } else {
                claims[name] = value.clone();
            }
        });
        assert!(claims.caller(&rules(), 50_000).is_err(), "{name} = {value}");
    }
}
