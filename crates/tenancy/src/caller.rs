//! An authenticated caller with its permissions and limits. Request handlers check it before they act;
//! there is no other source of permissions.

use serde::{Deserialize, Serialize};

use crate::key::KeyId;
use crate::limit::Rate;
use crate::scope::{Scope, Scopes};
use crate::tenant::Tenant;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The key id or the token subject; usage and limits are counted under it.
    pub client: String,
    pub tenant: Tenant,
    pub scopes: Scopes,
    pub modules: AllowList,
    pub models: AllowList,
    pub rate: Option<Rate>,
    /// Maximum number of concurrent runs.
    pub concurrency: Option<u32>,
    pub proof: Credential,
}

/// The credential a caller presented. It is checked again for connections that outlive a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credential {
    /// None, on a server without authentication.
    None,
    Key(KeyId),
    Token {
        expires_at_ms: u64,
    },
}

/// Cannot collide with the client id of a key or token, which begins with its kind.
const LOCAL: &str = "local";

/// A permission that the caller lacks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denial {
    #[error("these credentials lack the scope `{0}`")]
    Scope(Scope),
    #[error("these credentials do not allow the module `{0}`")]
    Module(String),
}

impl Caller {
    /// The only user of a server without authentication.
    pub fn local() -> Self {
        Self {
            client: String::from(LOCAL),
            tenant: Tenant::local(),
            scopes: Scopes::all(),
            modules: AllowList::Any,
            models: AllowList::Any,
            rate: None,
            concurrency: None,
            proof: Credential::None,
        }
    }

    /// Whether the caller was admitted without authentication.
    pub fn is_local(&self) -> bool {
        self.client == LOCAL
    }

    pub fn require(&self, scope: Scope) -> Result<(), Denial> {
        if self.scopes.contains(scope) {
            Ok(())
        } else {
            Err(Denial::Scope(scope))
        }
    }

    pub fn require_module(&self, module: &str) -> Result<(), Denial> {
        if self.modules.allows(module) {
            Ok(())
        } else {
            Err(Denial::Module(String::from(module)))
        }
    }
}

/// Allowed names. No list allows all names; an empty list allows none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Option<Vec<String>>", into = "Option<Vec<String>>")]
pub enum AllowList {
    #[default]
    Any,
    Only(Vec<String>),
}

impl AllowList {
    pub fn allows(&self, name: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Only(names) => names.iter().any(|allowed| allowed == name),
        }
    }

    pub fn names(&self) -> Option<&[String]> {
        match self {
            Self::Any => None,
            Self::Only(names) => Some(names),
        }
    }
}

impl From<Option<Vec<String>>> for AllowList {
    fn from(names: Option<Vec<String>>) -> Self {
        names.map_or(Self::Any, Self::Only)
    }
}

impl From<AllowList> for Option<Vec<String>> {
    fn from(list: AllowList) -> Self {
        match list {
            AllowList::Any => None,
            AllowList::Only(names) => Some(names),
        }
    }
}
