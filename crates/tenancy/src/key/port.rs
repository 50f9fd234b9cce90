//! Where keys are kept.

use std::fmt;

use async_trait::async_trait;

use super::record::Key;
use super::secret::KeyId;
use crate::tenant::Tenant;

#[async_trait]
pub trait KeyStore: Send + Sync + fmt::Debug {
    /// Adds a key. An id that is there already is refused, never replaced.
    async fn create(&self, key: &Key) -> Result<(), KeyError>;

    async fn find(&self, id: &KeyId) -> Result<Option<Key>, KeyError>;

    /// Every key, or one tenant's, oldest first.
    async fn list(&self, tenant: Option<&Tenant>) -> Result<Vec<Key>, KeyError>;

    /// Ends a key for good. Revoking again changes nothing; the first time stands.
    async fn revoke(&self, id: &KeyId, at_ms: u64) -> Result<Key, KeyError>;
}

#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error("no key {0}")]
    Unknown(KeyId),
    #[error("key {0} exists already")]
    Exists(KeyId),
    #[error("the keys could not be read or written: {0}")]
    Storage(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl KeyError {
    pub fn storage(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Storage(error.into())
    }
}
