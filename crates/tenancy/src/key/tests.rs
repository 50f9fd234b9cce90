use proptest::prelude::*;
use secrecy::ExposeSecret;

use super::{Key, KeyStatus, NewKey, Secret};
use crate::caller::AllowList;
use crate::scope::{Scope, Scopes};
use crate::tenant::Tenant;

fn key(secret: &Secret, expires_at_ms: Option<u64>) -> Key {
    let new = NewKey {
        name: String::from("n"),
        tenant: Tenant::new("t"),
        scopes: [Scope::Read].into_iter().collect(),
        modules: AllowList::Any,
        models: AllowList::Any,
        rate: None,
        concurrency: None,
        expires_at_ms,
    };
    assert_eq!(new.problem(5), None);
    new.into_key(secret, 5)
}

proptest! {
    #[test]
    fn key_is_found_by_id_and_matches_only_its_secret(
        id: [u8; 6],
        bits: [u8; 32],
        other: [u8; 32],
    ) {
        let secret = Secret::from_random(id, bits);
        let key = key(&secret, None);
        let text = secret.reveal();
        let parsed = Secret::parse(text.expose_secret()).expect("a valid key");
        prop_assert_eq!(&parsed.id, &key.id);
        prop_assert!(key.admit(&parsed, 6).is_some());
        let stranger = Secret::from_random(id, other);
        prop_assert_eq!(key.admit(&stranger, 6).is_some(), bits == other);
        // Neither the stored nor the printed form contains the secret.
        let hex = hex::encode(bits);
        let printed = format!("{key:?}{secret:?}{parsed:?}");
        prop_assert!(!printed.contains(&hex));
        prop_assert!(!serde_json::to_string(&key).expect("serializes").contains(&hex));
    }

    #[test]
    fn arbitrary_text_is_not_a_key(text in ".*") {
        prop_assert!(Secret::parse(&text).is_none());
    }
}

#[test]
fn expired_or_revoked_key_is_refused() {
    let secret = Secret::from_random([1; 6], [2; 32]);
    let mut key = key(&secret, Some(100));
    assert_eq!(key.status(99), KeyStatus::Active);
    assert!(key.admit(&secret, 99).is_some());
    assert_eq!(key.status(100), KeyStatus::Expired);
    assert!(key.admit(&secret, 100).is_none());
    key.revoked_at_ms = Some(50);
    assert_eq!(key.status(99), KeyStatus::Revoked);
    assert!(key.admit(&secret, 60).is_none());
}

#[test]
fn invalid_new_key_is_refused() {
    let good = NewKey {
        name: String::from("n"),
        tenant: Tenant::local(),
        scopes: Scopes::all(),
        modules: AllowList::Any,
        models: AllowList::Any,
        rate: None,
        concurrency: None,
        expires_at_ms: None,
    };
    assert_eq!(good.problem(0), None);
    let spoiled: [fn(&mut NewKey); 5] = [
        |key| key.name.clear(),
        |key| key.tenant = Tenant::new(""),
        |key| key.scopes = Scopes::default(),
        |key| key.concurrency = Some(0),
        |key| key.expires_at_ms = Some(7),
    ];
    for spoil in spoiled {
        let mut bad = good.clone();
        spoil(&mut bad);
        assert!(bad.problem(7).is_some(), "{bad:?}");
    }
}
