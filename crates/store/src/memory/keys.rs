//! API keys with the lifetime of their process.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tenancy::{Key, KeyError, KeyId, KeyStore, Tenant};

#[derive(Debug, Default)]
pub struct MemoryKeys {
    keys: Mutex<BTreeMap<KeyId, Key>>,
}

impl MemoryKeys {
    fn keys(&self) -> MutexGuard<'_, BTreeMap<KeyId, Key>> {
        // No code panics while it holds the lock, so a poisoned map is still consistent.
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl KeyStore for MemoryKeys {
    async fn create(&self, key: &Key) -> Result<(), KeyError> {
        let mut keys = self.keys();
        if keys.contains_key(&key.id) {
            return Err(KeyError::Exists(key.id.clone()));
        }
        keys.insert(key.id.clone(), key.clone());
        Ok(())
    }

    async fn find(&self, id: &KeyId) -> Result<Option<Key>, KeyError> {
        Ok(self.keys().get(id).cloned())
    }

    async fn list(&self, tenant: Option<&Tenant>) -> Result<Vec<Key>, KeyError> {
        let keys = self.keys();
        let own = keys
            .values()
            .filter(|key| tenant.is_none_or(|tenant| key.tenant == *tenant));
        let mut own: Vec<_> = own.cloned().collect();
        own.sort_by(|a, b| (a.created_at_ms, &a.id).cmp(&(b.created_at_ms, &b.id)));
        Ok(own)
    }

    async fn revoke(&self, id: &KeyId, at_ms: u64) -> Result<Key, KeyError> {
        let mut keys = self.keys();
        let key = keys.get_mut(id).ok_or_else(|| KeyError::Unknown(id.clone()))?;
        key.revoked_at_ms.get_or_insert(at_ms);
        Ok(key.clone())
    }
}
