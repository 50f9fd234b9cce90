//! Signed tokens (JWT) with verified signatures: from claims to a caller. Verifying signatures and fetching
//! key sets are done elsewhere.

use std::fmt;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::caller::{AllowList, Caller, Credential};
use crate::limit::Rate;
use crate::limits;
use crate::scope::Scopes;
use crate::tenant::Tenant;

/// Requirements for the claims of a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenRules {
    pub issuer: String,
    pub audience: String,
    /// The claim with the tenant.
    pub tenant_claim: String,
    /// The claim with the scopes, as a space-separated text or as a list.
    pub scope_claim: String,
    /// Allowed clock difference.
    pub leeway_ms: u64,
    /// The limits of each caller: tokens contain none.
    #[serde(default)]
    pub rate: Option<Rate>,
    #[serde(default)]
    pub concurrency: Option<u32>,
}

/// A source of the keys that sign tokens.
#[async_trait]
pub trait JwksSource: Send + Sync + fmt::Debug {
    /// The location of the key set; identifies the source.
    fn location(&self) -> String;

    /// The key set as JSON (RFC 7517).
    async fn fetch(&self) -> Result<String, String>;
}

/// Claims with a verified signature.
#[derive(Clone, Debug, PartialEq)]
pub struct Claims(pub Map<String, Value>);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    #[error("the token has no `{0}`")]
    Missing(String),
    #[error("the token has expired")]
    Expired,
    #[error("the token is not valid yet")]
    TooEarly,
    #[error("the token has another audience")]
    Audience,
    #[error("the token has another issuer")]
    Issuer,
}

impl Claims {
    /// The caller of these claims. A missing required claim is an error.
    pub fn caller(&self, rules: &TokenRules, now_ms: u64) -> Result<Caller, TokenError> {
        let missing = |name: &str| TokenError::Missing(String::from(name));
        let expires_at_ms = self.time_ms("exp").ok_or_else(|| missing("exp"))?;
        let expires_at_ms = expires_at_ms.saturating_add(rules.leeway_ms);
        if now_ms >= expires_at_ms {
            return Err(TokenError::Expired);
        }
        if let Some(value) = self.0.get("nbf") {
            let from_ms = time_ms(value).ok_or_else(|| missing("nbf"))?;
            if now_ms.saturating_add(rules.leeway_ms) < from_ms {
                return Err(TokenError::TooEarly);
            }
        }
        if self.text("iss").ok_or_else(|| missing("iss"))? != rules.issuer {
            return Err(TokenError::Issuer);
        }
        let audience = self.0.get("aud").ok_or_else(|| missing("aud"))?;
        if !words(audience).any(|word| word == rules.audience) {
            return Err(TokenError::Audience);
        }
        let tenant = self.text(&rules.tenant_claim).filter(|name| is_name(name));
        let tenant = tenant.ok_or_else(|| missing(&rules.tenant_claim))?;
        let subject = self.text("sub").filter(|name| is_name(name));
        let subject = subject.ok_or_else(|| missing("sub"))?;
        let scopes = self
            .0
            .get(&rules.scope_claim)
            .ok_or_else(|| missing(&rules.scope_claim))?;
        let scopes: Vec<&str> = words(scopes).collect();
        Ok(Caller {
            client: client(tenant, subject),
            tenant: Tenant::new(tenant),
            scopes: Scopes::known_in(&scopes.join(" ")),
            modules: AllowList::Any,
            models: AllowList::Any,
            rate: rules.rate,
            concurrency: rules.concurrency,
            proof: Credential::Token { expires_at_ms },
        })
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Value::as_str)
    }

    fn time_ms(&self, name: &str) -> Option<u64> {
        self.0.get(name).and_then(time_ms)
    }
}

/// Subjects are unique within a tenant only. The escaping prevents that two pairs have one name.
fn client(tenant: &str, subject: &str) -> String {
    let tenant = tenant.replace('%', "%25").replace('/', "%2F");
    format!("jwt:{tenant}/{subject}")
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= limits::TENANT_BYTES_MAX
}

/// Seconds since the epoch, whole or not (RFC 7519), as milliseconds.
fn time_ms(value: &Value) -> Option<u64> {
    if let Some(seconds) = value.as_u64() {
        return Some(seconds.saturating_mul(1_000));
    }
    let seconds = value
        .as_f64()
        .filter(|seconds| seconds.is_finite() && *seconds >= 0.0)?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "finite and not negative; values beyond u64 saturate"
    )]
    Some((seconds * 1_000.0) as u64)
}

/// The words of a text or of a list of texts.
fn words(value: &Value) -> impl Iterator<Item = &str> {
    let one = value.as_str().into_iter();
    let many = value.as_array().into_iter().flatten().filter_map(Value::as_str);
    one.chain(many).flat_map(str::split_whitespace)
}

#[cfg(test)]
mod tests;
