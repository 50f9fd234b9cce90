//! Reasoning of a model. It is bound to its origin: signatures and encrypted data are replayed only to the
//! same origin, and reasoning never becomes assistant text.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reasoning {
    pub form: ReasoningForm,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Encrypted data that only the origin can decrypt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<ReasoningOrigin>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReasoningForm {
    #[default]
    Text,
    Summary,
    Encrypted,
    Redacted,
}

/// Where reasoning came from. The codec sets the dialect; the caller of the back-end sets the other fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReasoningOrigin {
    pub dialect: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credential_ref: Option<String>,
}

impl ReasoningOrigin {
    pub fn dialect(dialect: crate::Dialect) -> Self {
        Self {
            dialect: String::from(dialect.as_str()),
            ..Self::default()
        }
    }

    /// Whether reasoning from here may be replayed to `target`: no field that both have differs.
    pub fn agrees_with(&self, target: &Self) -> bool {
        let same = |a: &Option<String>, b: &Option<String>| a.is_none() || b.is_none() || a == b;
        self.dialect == target.dialect
            && same(&self.provider, &target.provider)
            && same(&self.model, &target.model)
            && same(&self.endpoint, &target.endpoint)
            && same(&self.credential_ref, &target.credential_ref)
    }
}

impl Reasoning {
    pub fn text(text: impl Into<String>, origin: ReasoningOrigin) -> Self {
        Self {
            text: Some(text.into()),
            origin: Some(origin),
            ..Self::default()
        }
    }

    /// Whether it may be replayed to `target`. Reasoning of unknown origin may not.
    pub fn replays_to(&self, target: &ReasoningOrigin) -> bool {
        self.origin
            .as_ref()
            .is_some_and(|origin| origin.agrees_with(target))
    }
}
