//! Key cache, so that a busy client does not cause a database read per request. A revoked key is refused when
//! its entry has expired.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tenancy::{Caller, Key, KeyError, KeyId, KeyStatus, KeyStore, Secret};
use tokio::time::Instant;

use crate::limits;

#[derive(Debug)]
pub(super) struct KeyCache {
    keys: Arc<dyn KeyStore>,
    cached: Mutex<HashMap<KeyId, CachedKey>>,
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
        let Some(key) = self.keys.find(id).await? else {
            self.lock().remove(id);
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

    fn lock(&self) -> MutexGuard<'_, HashMap<KeyId, CachedKey>> {
        // No code panics while it holds the lock, so a poisoned map is consistent.
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
