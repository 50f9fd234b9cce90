//! Signed tokens, verified against a key set. The operator chooses the allowed algorithms, not the token;
//! symmetric algorithms are excluded, because a verifier could also sign tokens.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jsonwebtoken::jwk::{Jwk, JwkSet};
use jsonwebtoken::{DecodingKey, Validation, decode, decode_header};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};
use tenancy::{Caller, Claims, JwksSource, TokenRules};
use tokio::time::Instant;
use tracing::{debug, warn};

use crate::limits;

/// An algorithm that can be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Algorithm(jsonwebtoken::Algorithm);

const ALGORITHMS: [(&str, jsonwebtoken::Algorithm); 9] = [
    ("RS256", jsonwebtoken::Algorithm::RS256),
    ("RS384", jsonwebtoken::Algorithm::RS384),
    ("RS512", jsonwebtoken::Algorithm::RS512),
    ("PS256", jsonwebtoken::Algorithm::PS256),
    ("PS384", jsonwebtoken::Algorithm::PS384),
    ("PS512", jsonwebtoken::Algorithm::PS512),
    ("ES256", jsonwebtoken::Algorithm::ES256),
    ("ES384", jsonwebtoken::Algorithm::ES384),
    ("EdDSA", jsonwebtoken::Algorithm::EdDSA),
];

impl FromStr for Algorithm {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = ALGORITHMS.iter().find(|(name, _)| *name == text);
        known.map(|(_, algorithm)| Self(*algorithm)).ok_or_else(|| {
            let names: Vec<_> = ALGORITHMS.iter().map(|(name, _)| *name).collect();
            format!(
                "`{text}` is not a supported algorithm; supported: {}",
                names.join(", ")
            )
        })
    }
}

pub struct TokenVerifier {
    source: Arc<dyn JwksSource>,
    rules: TokenRules,
    algorithms: Vec<Algorithm>,
    set: Mutex<CachedKeySet>,
    /// Held during a fetch, so that only one task fetches.
    fetching: tokio::sync::Mutex<()>,
}

/// Cached key set.
#[derive(Clone, Default)]
struct CachedKeySet {
    keys: Option<(Arc<JwkSet>, Instant)>,
    /// Time of the last fetch, successful or not.
    last_fetch: Option<Instant>,
    /// A fetch is due regardless of age.
    refetch: bool,
}

impl CachedKeySet {
    /// The key with this id, if the set is younger than `age_max`.
    fn pick(&self, kid: Option<&str>, age_max: Duration) -> Option<Jwk> {
        let (keys, fetched) = self.keys.as_ref()?;
        let young = fetched.elapsed() < age_max;
        young.then(|| pick(keys, kid)).flatten()
    }

    fn pick_fresh(&self, kid: Option<&str>) -> Option<Jwk> {
        match self.refetch {
            true => None,
            false => self.pick(kid, limits::KEY_SET_AGE_MAX),
        }
    }

    /// Rate limit of fetches: an unknown key id must not cause a fetch per request.
    fn may_fetch(&self) -> bool {
        self.last_fetch
            .is_none_or(|at| at.elapsed() >= limits::KEY_SET_PAUSE)
    }
}

impl fmt::Debug for TokenVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens")
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}

impl TokenVerifier {
    pub fn new(source: Arc<dyn JwksSource>, rules: TokenRules, algorithms: Vec<Algorithm>) -> Self {
        Self {
            source,
            rules,
            algorithms,
            set: Mutex::default(),
            fetching: tokio::sync::Mutex::default(),
        }
    }

    /// The caller of the token; `None` if the token is invalid.
    pub(super) async fn admit(&self, token: &SecretString, now_ms: u64) -> Option<Caller> {
        let token = token.expose_secret();
        let header = decode_header(token).ok()?;
        if !self.algorithms.iter().any(|allowed| allowed.0 == header.alg) {
            debug!(algorithm = ?header.alg, "token signed with an algorithm that is not allowed");
            return None;
        }
        let key = self.key(header.kid.as_deref()).await?;
        let key = DecodingKey::from_jwk(&key).ok()?;
        let mut validation = Validation::new(header.alg);
        // Times, issuer and audience are checked below, with the clock of the engine.
        validation.required_spec_claims.clear();
        validation.validate_exp = false;
        validation.validate_nbf = false;
        validation.validate_aud = false;
        let decoded = decode::<Map<String, Value>>(token, &key, &validation).ok()?;
        match Claims(decoded.claims).caller(&self.rules, now_ms) {
            Ok(caller) => Some(caller),
            Err(reason) => {
                debug!(%reason, "token refused");
                None
            }
        }
    }

    async fn key(&self, kid: Option<&str>) -> Option<Jwk> {
        let known = self.known().clone();
        if let Some(key) = known.pick_fresh(kid) {
            return Some(key);
        }
        let old = known.pick(kid, limits::KEY_SET_STALE_MAX);
        if !known.may_fetch() {
            return old;
        }
        let guard = match &old {
            // A caller with a stale key does not wait for a fetch in progress.
            Some(_) => self.fetching.try_lock().ok(),
            None => Some(self.fetching.lock().await),
        };
        if guard.is_some() && self.known().may_fetch() {
            self.fetch().await;
        }
        self.known().pick(kid, limits::KEY_SET_STALE_MAX)
    }

    async fn fetch(&self) {
        let fetched = match self.source.fetch().await {
            Ok(text) => serde_json::from_str::<JwkSet>(&text).map_err(|error| error.to_string()),
            Err(reason) => Err(reason),
        };
        // The pause starts after the fetch, regardless of its duration.
        let now = Instant::now();
        let mut known = self.known();
        known.last_fetch = Some(now);
        known.refetch = false;
        match fetched {
            Ok(keys) => known.keys = Some((Arc::new(keys), now)),
            Err(reason) => {
                warn!(%reason, has_old = known.keys.is_some(), "key set fetch failed");
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, CachedKeySet> {
        // No code panics while it holds the lock, so a poisoned value is consistent.
        self.set.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over the key set of another verifier with the same source, until it has been fetched again.
    pub(super) fn inherit(&self, other: &Self) {
        if self.source.location() == other.source.location() {
            let keys = other.known().keys.clone();
            *self.known() = CachedKeySet {
                keys,
                last_fetch: None,
                refetch: true,
            };
        }
    }
}

/// The key with this id; without an id, the only key of the set.
fn pick(set: &JwkSet, kid: Option<&str>) -> Option<Jwk> {
    match kid {
        Some(kid) => set.find(kid).cloned(),
        None => match set.keys.as_slice() {
            [only] => Some(only.clone()),
            _ => None,
        },
    }
}

#[cfg(test)]
mod tests;
