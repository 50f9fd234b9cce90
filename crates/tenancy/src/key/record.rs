//! A key as stored: everything except the secret.

use serde::Serialize;

use super::secret::{KeyId, Secret};
use crate::caller::{AllowList, Caller, Credential};
use crate::limit::Rate;
use crate::limits;
use crate::scope::Scopes;
use crate::tenant::Tenant;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Key {
    pub id: KeyId,
    #[serde(serialize_with = "as_text")]
    pub tenant: Tenant,
    pub name: String,
    /// Hash of the secret; never shown.
    #[serde(skip)]
    pub hash: String,
    pub scopes: Scopes,
    pub modules: AllowList,
    pub models: AllowList,
    pub rate: Option<Rate>,
    pub concurrency: Option<u32>,
    pub created_at_ms: u64,
    pub expires_at_ms: Option<u64>,
    pub revoked_at_ms: Option<u64>,
}

fn as_text<S: serde::Serializer>(tenant: &Tenant, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(tenant.as_str())
}

/// The properties of a new key.
#[derive(Clone, Debug)]
pub struct NewKey {
    pub name: String,
    pub tenant: Tenant,
    pub scopes: Scopes,
    pub modules: AllowList,
    pub models: AllowList,
    pub rate: Option<Rate>,
    pub concurrency: Option<u32>,
    pub expires_at_ms: Option<u64>,
}

impl NewKey {
    /// Why the key cannot be created, if so.
    pub fn problem(&self, now_ms: u64) -> Option<&'static str> {
        let too_many = |list: &AllowList| {
            list.names()
                .is_some_and(|names| names.len() > limits::ALLOWED_MAX)
        };
        if self.name.is_empty() || self.name.len() > limits::NAME_BYTES_MAX {
            Some("the name is empty or too long")
        } else if self.tenant.as_str().is_empty() || self.tenant.as_str().len() > limits::TENANT_BYTES_MAX {
            Some("the tenant's name is empty or too long")
        } else if self.scopes == Scopes::default() {
            Some("a key requires at least one scope")
        } else if too_many(&self.modules) || too_many(&self.models) {
            Some("an allow-list is too long")
        } else if self.concurrency == Some(0) {
            Some("the concurrency must be at least 1")
        } else if self.expires_at_ms.is_some_and(|at_ms| at_ms <= now_ms) {
            Some("the expiry time is in the past")
        } else {
            None
        }
    }

    pub fn into_key(self, secret: &Secret, now_ms: u64) -> Key {
        Key {
            id: secret.id.clone(),
            tenant: self.tenant,
            name: self.name,
            hash: secret.hash(),
            scopes: self.scopes,
            modules: self.modules,
            models: self.models,
            rate: self.rate,
            concurrency: self.concurrency,
            created_at_ms: now_ms,
            expires_at_ms: self.expires_at_ms,
            revoked_at_ms: None,
        }
    }
}

/// Whether a key is valid at a given time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyStatus {
    Active,
    Expired,
    Revoked,
}

impl KeyStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
        }
    }
}

impl Key {
    pub fn status(&self, now_ms: u64) -> KeyStatus {
        if self.revoked_at_ms.is_some() {
            KeyStatus::Revoked
        } else if self.expires_at_ms.is_some_and(|at_ms| at_ms <= now_ms) {
            KeyStatus::Expired
        } else {
            KeyStatus::Active
        }
    }

    /// The caller authenticated by this secret; `None` for a wrong secret and for an expired or revoked
    /// key. The reason is not disclosed.
    pub fn admit(&self, secret: &Secret, now_ms: u64) -> Option<Caller> {
        let good = secret.matches(&self.hash) && self.status(now_ms) == KeyStatus::Active;
        good.then(|| Caller {
            client: format!("key:{}", self.id),
            tenant: self.tenant.clone(),
            scopes: self.scopes.clone(),
            modules: self.modules.clone(),
            models: self.models.clone(),
            rate: self.rate,
            concurrency: self.concurrency,
            proof: Credential::Key(self.id.clone()),
        })
    }
}
