//! Signed tokens against a key set. Which algorithms count is the operator's choice and never the token's;
//! a shared secret is not among them, since whoever could check a token could then make one.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use jsonwebtoken::jwk::{Jwk, JwkSet};
use jsonwebtoken::{DecodingKey, Validation, decode, decode_header};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};
use tenancy::{Caller, Claims, TokenRules, TokenSource};
use tokio::sync::RwLock;
use tokio::time::Instant;
use tracing::{debug, warn};

use crate::limits;

/// The algorithms that can be allowed.
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
                "`{text}` is not an algorithm that can be allowed; known: {}",
                names.join(", ")
            )
        })
    }
}

pub struct Tokens {
    source: Arc<dyn TokenSource>,
    rules: TokenRules,
    algorithms: Vec<Algorithm>,
    set: RwLock<Option<Loaded>>,
}

#[derive(Clone)]
struct Loaded {
    keys: Arc<JwkSet>,
    /// When it was last asked for, well or not.
    asked: Instant,
    /// When it was last had.
    fetched: Instant,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens")
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}

impl Tokens {
    pub fn new(source: Arc<dyn TokenSource>, rules: TokenRules, algorithms: Vec<Algorithm>) -> Self {
        Self {
            source,
            rules,
            algorithms,
            set: RwLock::new(None),
        }
    }

    /// Whoever the token speaks for; `None` if it is not good, for whatever reason.
    pub(super) async fn admit(&self, token: &SecretString, now_ms: u64) -> Option<Caller> {
        let token = token.expose_secret();
        let header = decode_header(token).ok()?;
        if !self.algorithms.iter().any(|allowed| allowed.0 == header.alg) {
            debug!(algorithm = ?header.alg, "a token is signed in a way that is not allowed");
            return None;
        }
        let key = self.key(header.kid.as_deref()).await?;
        let key = DecodingKey::from_jwk(&key).ok()?;
        let mut validation = Validation::new(header.alg);
        // Times, issuer and audience are judged below, by our own clock.
        validation.required_spec_claims.clear();
        validation.validate_exp = false;
        validation.validate_nbf = false;
        validation.validate_aud = false;
        let decoded = decode::<Map<String, Value>>(token, &key, &validation).ok()?;
        match Claims(decoded.claims).caller(&self.rules, now_ms) {
            Ok(caller) => Some(caller),
            Err(reason) => {
                debug!(%reason, "a token is refused");
                None
            }
        }
    }

    async fn key(&self, kid: Option<&str>) -> Option<Jwk> {
        let loaded = self.set.read().await.clone();
        let fresh = loaded.filter(|loaded| loaded.fetched.elapsed() < limits::KEY_SET_AGE_MAX);
        if let Some(loaded) = fresh {
            if let Some(key) = pick(&loaded.keys, kid) {
                return Some(key);
            }
            // Keys are exchanged now and then; but nobody makes us ask all the time.
            if loaded.asked.elapsed() < limits::KEY_SET_PAUSE {
                return None;
            }
        }
        let set = self.fetch().await?;
        pick(&set, kid)
    }

    /// The set, fetched once for all who wait for it.
    async fn fetch(&self) -> Option<Arc<JwkSet>> {
        let mut place = self.set.write().await;
        if let Some(loaded) = &*place
            && loaded.asked.elapsed() < limits::KEY_SET_PAUSE
        {
            let usable = loaded.fetched.elapsed() < limits::KEY_SET_STALE_MAX;
            return usable.then(|| loaded.keys.clone());
        }
        let now = Instant::now();
        let fetched = match self.source.fetch().await {
            Ok(text) => serde_json::from_str::<JwkSet>(&text).map_err(|error| error.to_string()),
            Err(reason) => Err(reason),
        };
        match (fetched, &mut *place) {
            (Ok(keys), place) => {
                let keys = Arc::new(keys);
                *place = Some(Loaded {
                    keys: keys.clone(),
                    asked: now,
                    fetched: now,
                });
                Some(keys)
            }
            (Err(reason), Some(loaded)) => {
                warn!(%reason, "the key set cannot be fetched; the old one is used for a while");
                loaded.asked = now;
                let usable = loaded.fetched.elapsed() < limits::KEY_SET_STALE_MAX;
                usable.then(|| loaded.keys.clone())
            }
            (Err(reason), None) => {
                warn!(%reason, "the key set cannot be fetched");
                None
            }
        }
    }
}

/// The key of this name; of a set with one key, that one.
fn pick(set: &JwkSet, kid: Option<&str>) -> Option<Jwk> {
    match kid {
        Some(kid) => set.find(kid).cloned(),
        None => match set.keys.as_slice() {
            [only] => Some(only.clone()),
            _ => None,
        },
    }
}
