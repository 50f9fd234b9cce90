//! Conformance cases of the port for API keys. Each case gets an empty store.

use std::sync::Arc;

use tenancy::{AllowList, Key, KeyError, KeyStore, NewKey, Scope, Scopes, Secret, Tenant};

type SharedKeys = Arc<dyn KeyStore>;

/// Runs every case.
pub async fn suite<F>(empty: impl Fn() -> F)
where
    F: Future<Output = SharedKeys>,
{
    key_is_read_as_stored(empty().await).await;
    duplicate_id_is_refused(empty().await).await;
    keys_are_listed_oldest_first(empty().await).await;
    revocation_is_permanent(empty().await).await;
}

/// For persistent stores: `open` opens the same storage each time.
pub async fn reopening<F>(open: impl Fn() -> F)
where
    F: Future<Output = SharedKeys>,
{
    let key = full(1, 10);
    open().await.create(&key).await.unwrap();
    assert_eq!(open().await.find(&key.id).await.unwrap(), Some(key));
}

async fn key_is_read_as_stored(keys: SharedKeys) {
    let (full, plain) = (full(1, 10), plain(2, 20));
    for key in [&full, &plain] {
        keys.create(key).await.unwrap();
        assert_eq!(keys.find(&key.id).await.unwrap().as_ref(), Some(key));
    }
    assert_eq!(keys.find(&secret(3).id).await.unwrap(), None);
}

async fn duplicate_id_is_refused(keys: SharedKeys) {
    keys.create(&plain(1, 10)).await.unwrap();
    let again = keys.create(&full(1, 20)).await;
    assert!(matches!(again, Err(KeyError::Exists(_))), "{again:?}");
    assert_eq!(keys.find(&secret(1).id).await.unwrap(), Some(plain(1, 10)));
}

async fn keys_are_listed_oldest_first(keys: SharedKeys) {
    for key in [plain(3, 30), full(1, 10), plain(2, 20)] {
        keys.create(&key).await.unwrap();
    }
    assert_eq!(
        keys.list(None).await.unwrap(),
        [full(1, 10), plain(2, 20), plain(3, 30)]
    );
    assert_eq!(
        keys.list(Some(&Tenant::new("acme"))).await.unwrap(),
        [full(1, 10)]
    );
    assert_eq!(keys.list(Some(&Tenant::new("no-such-tenant"))).await.unwrap(), []);
}

async fn revocation_is_permanent(keys: SharedKeys) {
    let key = plain(1, 10);
    keys.create(&key).await.unwrap();
    keys.create(&plain(2, 10)).await.unwrap();
    assert_eq!(keys.revoke(&key.id, 50).await.unwrap().revoked_at_ms, Some(50));
    assert_eq!(keys.revoke(&key.id, 90).await.unwrap().revoked_at_ms, Some(50));
    assert_eq!(keys.find(&key.id).await.unwrap().unwrap().revoked_at_ms, Some(50));
    assert_eq!(
        keys.find(&secret(2).id).await.unwrap().unwrap().revoked_at_ms,
        None
    );
    let unknown = keys.revoke(&secret(3).id, 1).await;
    assert!(matches!(unknown, Err(KeyError::Unknown(_))), "{unknown:?}");
}

fn secret(number: u8) -> Secret {
    Secret::from_random([number; 6], [number; 32])
}

fn plain(number: u8, at_ms: u64) -> Key {
    let new = NewKey {
        name: String::from("plain"),
        tenant: Tenant::local(),
        scopes: [Scope::Read].into_iter().collect(),
        modules: AllowList::Any,
        models: AllowList::Any,
        rate: None,
        concurrency: None,
        expires_at_ms: None,
    };
    new.into_key(&secret(number), at_ms)
}

fn full(number: u8, at_ms: u64) -> Key {
    let new = NewKey {
        name: String::from("Gr\u{f6}\u{df}e; DROP TABLE"),
        tenant: Tenant::new("acme"),
        scopes: Scopes::all(),
        modules: AllowList::Only(vec![String::from("a"), String::from("b, c")]),
        models: AllowList::Only(Vec::new()),
        rate: Some("60/m".parse().unwrap()),
        concurrency: Some(7),
        expires_at_ms: Some(1_000),
    };
    new.into_key(&secret(number), at_ms)
}
