//! Key cache, so that a busy client does not cause a database read per request, whether its key exists or not. A
//! revoked key is refused, and a new one accepted, when its entry has expired.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tenancy::{Caller, Key, KeyError, KeyId, KeyStatus, KeyStore, Secret};
use tokio::time::Instant;

use crate::limits;

#[derive(Debug)]
pub(super) struct KeyCache {
    keys: Arc<dyn KeyStore>,
    cached: Mutex<HashMap<KeyId, CachedKey>>,
    /// Separate, so that guessed ids do not displace keys.
    unknown: Mutex<HashMap<KeyId, Instant>>,
}

#[derive(Clone, Debug)]
struct CachedKey {
    key: Arc<Key>,
    at: Instant,
}

impl KeyCache {
    pub(super) fn new(keys: Arc<dyn KeyStore>) -> Self {
        Self {
            keys,
            cached: Mutex::default(),
            unknown: Mutex::default(),
        }
    }

    pub(super) async fn admit(&self, secret: &Secret, now_ms: u64) -> Result<Option<Caller>, KeyError> {
        let key = self.find(&secret.id).await?;
        Ok(key.and_then(|key| key.admit(secret, now_ms)))
    }

    /// Whether a key that was accepted before is still valid.
    pub(super) async fn is_valid(&self, id: &KeyId, now_ms: u64) -> Result<bool, KeyError> {
        let key = self.find(id).await?;
        Ok(key.is_some_and(|key| key.status(now_ms) == KeyStatus::Active))
    }

    async fn find(&self, id: &KeyId) -> Result<Option<Arc<Key>>, KeyError> {
        let cached = self.lock().get(id).cloned();
        if let Some(cached) = cached
            && cached.at.elapsed() < limits::KEY_CACHE_TTL
        {
            return Ok(Some(cached.key));
        }
        let is_recent = |at: &Instant| at.elapsed() < limits::KEY_CACHE_TTL;
        if self.unknown().get(id).is_some_and(is_recent) {
            return Ok(None);
        }
        let Some(key) = self.keys.find(id).await? else {
            self.lock().remove(id);
            let mut unknown = self.unknown();
            if unknown.len() >= limits::UNKNOWN_KEYS_MAX {
                unknown.retain(|_, at| is_recent(at));
            }
            if unknown.len() < limits::UNKNOWN_KEYS_MAX {
                unknown.insert(id.clone(), Instant::now());
            }
            return Ok(None);
        };
        let key = Arc::new(key);
        let cached = CachedKey {
            key: key.clone(),
            at: Instant::now(),
        };
        let mut known = self.lock();
        if known.len() >= limits::KEY_CACHE_MAX {
            known.retain(|_, cached| cached.at.elapsed() < limits::KEY_CACHE_TTL);
        }
        if known.len() < limits::KEY_CACHE_MAX {
            known.insert(id.clone(), cached);
        }
        Ok(Some(key))
    }

    fn unknown(&self) -> MutexGuard<'_, HashMap<KeyId, Instant>> {
        self.unknown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<KeyId, CachedKey>> {
        // No code panics while it holds the lock, so a poisoned map is consistent.
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use async_trait::async_trait;
    use tenancy::{Key, KeyError, KeyId, KeyStore, Tenant};

    use super::KeyCache;
    use crate::limits;

    /// Has no key, and counts the reads.
    #[derive(Debug, Default)]
    struct Empty(AtomicUsize);

    #[async_trait]
    impl KeyStore for Empty {
        async fn find(&self, _: &KeyId) -> Result<Option<Key>, KeyError> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(None)
        }

        async fn create(&self, key: &Key) -> Result<(), KeyError> {
            Err(KeyError::Exists(key.id.clone()))
        }

        async fn list(&self, _: Option<&Tenant>) -> Result<Vec<Key>, KeyError> {
            Ok(Vec::new())
        }

        async fn revoke(&self, id: &KeyId, _: u64) -> Result<Key, KeyError> {
            Err(KeyError::Unknown(id.clone()))
        }
    }

    fn id(number: usize) -> KeyId {
        format!("{number:012x}").parse().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn unknown_keys_are_looked_up_once_within_the_lifetime_of_an_entry() {
        let store = Arc::new(Empty::default());
        let cache = KeyCache::new(store.clone());
        for _ in 0..100 {
            assert!(cache.find(&id(1)).await.unwrap().is_none());
        }
        assert_eq!(store.0.load(Ordering::Relaxed), 1);
        tokio::time::advance(limits::KEY_CACHE_TTL).await;
        assert!(cache.find(&id(1)).await.unwrap().is_none());
        assert_eq!(store.0.load(Ordering::Relaxed), 2, "a key created since is found");
        for number in 0..limits::UNKNOWN_KEYS_MAX + 10 {
            cache.find(&id(number)).await.unwrap();
        }
        assert_eq!(cache.unknown().len(), limits::UNKNOWN_KEYS_MAX);
    }
}
