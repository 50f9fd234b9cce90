//! Whoever makes a request, once it is known who that is. Handlers ask it before they act; nothing else
//! says what is allowed.

use serde::{Deserialize, Serialize};

use crate::key::KeyId;
use crate::limit::Rate;
use crate::scope::{Scope, Scopes};
use crate::tenant::Tenant;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The key's id, or the subject of a token; what usage and limits are counted under.
    pub client: String,
    pub tenant: Tenant,
    pub scopes: Scopes,
    pub modules: AllowList,
    pub models: AllowList,
    pub rate: Option<Rate>,
    /// Most runs at a time.
    pub concurrency: Option<u32>,
    pub proof: Credential,
}

/// What a caller has shown. Whoever stays longer than one request takes is asked again whether it still counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credential {
    /// Nothing, where nothing had to be shown.
    None,
    Key(KeyId),
    Token {
        expires_at_ms: u64,
    },
}

/// No key or token has this name: theirs begin with their kind.
const LOCAL: &str = "local";

/// The caller may not do this.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denial {
    #[error("these credentials lack the scope `{0}`")]
    Scope(Scope),
    #[error("these credentials do not allow the module `{0}`")]
    Module(String),
}

impl Caller {
    /// The one user of a server that asks for no credentials.
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

    /// Nobody had to say who this is.
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

/// Names that are allowed. No list allows all; a list allows what is on it, and an empty one nothing.
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
