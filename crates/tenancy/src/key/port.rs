//! The port of the key store.

use std::fmt;

use async_trait::async_trait;

use super::record::Key;
use super::secret::KeyId;
use crate::tenant::Tenant;

#[async_trait]
pub trait KeyStore: Send + Sync + fmt::Debug {
    /// Adds a key. An existing id is refused, never replaced.
    async fn create(&self, key: &Key) -> Result<(), KeyError>;

    async fn find(&self, id: &KeyId) -> Result<Option<Key>, KeyError>;

    /// All keys, or those of one tenant, oldest first.
    async fn list(&self, tenant: Option<&Tenant>) -> Result<Vec<Key>, KeyError>;

    /// Revokes a key permanently. Revoking it again keeps the first revocation time.
    async fn revoke(&self, id: &KeyId, at_ms: u64) -> Result<Key, KeyError>;
}

#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error("key {0} not found")]
    Unknown(KeyId),
    #[error("key {0} already exists")]
    Exists(KeyId),
    #[error("cannot read or write keys: {0}")]
    Storage(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl KeyError {
    pub fn storage(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Storage(error.into())
    }
}
