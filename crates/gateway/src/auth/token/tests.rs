//! Tests of the key set cache with an issuer that is down or slow.

use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use futures::FutureExt;

use super::*;
use crate::allocated_bytes::assert_linear;

/// A scripted issuer.
#[derive(Debug, Default)]
struct Issuer {
    fetches: AtomicUsize,
    down: bool,
    slow: bool,
}

#[async_trait]
impl JwksSource for Issuer {
    fn location(&self) -> String {
        String::from("here")
    }

    async fn fetch(&self) -> Result<String, String> {
        let fetches = self.fetches.fetch_add(1, Ordering::Relaxed);
        if self.slow && fetches > 0 {
            tokio::time::sleep(limits::KEY_SET_PAUSE).await;
        }
        match self.down {
            true => Err(String::from("down")),
            false => Ok(String::from(
                r#"{"keys": [{"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA", "kid": "k"}]}"#,
            )),
        }
    }
}

fn tokens(issuer: &Arc<Issuer>) -> TokenVerifier {
    let rules = TokenRules {
        issuer: String::new(),
        audience: String::new(),
        tenant_claim: String::new(),
        scope_claim: String::new(),
        leeway_ms: 0,
        rate: None,
        concurrency: None,
    };
    TokenVerifier::new(issuer.clone(), rules, Vec::new())
}

#[tokio::test(start_paused = true)]
async fn limits_fetches_while_issuer_is_down() {
    let issuer = Arc::new(Issuer {
        down: true,
        ..Issuer::default()
    });
    let tokens = tokens(&issuer);
    for times in 1..=2 {
        for _ in 0..5 {
            assert!(tokens.key(Some("k")).await.is_none());
        }
        assert_eq!(issuer.fetches.load(Ordering::Relaxed), times);
        tokio::time::advance(limits::KEY_SET_PAUSE).await;
    }
}

#[tokio::test(start_paused = true)]
async fn unknown_key_id_does_not_block_known_keys() {
    let issuer = Arc::new(Issuer {
        slow: true,
        ..Issuer::default()
    });
    let tokens = tokens(&issuer);
    assert!(tokens.key(Some("k")).await.is_some());
    tokio::time::advance(limits::KEY_SET_PAUSE).await;
    let mut unknown = std::pin::pin!(tokens.key(Some("unknown")));
    assert!(
        unknown.as_mut().now_or_never().is_none(),
        "a fetch is in progress"
    );
    assert!(tokens.key(Some("k")).now_or_never().flatten().is_some());
    // Also when the key is stale.
    tokio::time::advance(limits::KEY_SET_AGE_MAX).await;
    assert!(tokens.key(Some("k")).now_or_never().flatten().is_some());
    assert!(unknown.await.is_none());
    assert!(
        tokens.key(Some("unknown")).now_or_never().is_some(),
        "no fetch within the pause"
    );
    assert_eq!(issuer.fetches.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn reload_inherits_key_set() {
    let good = Arc::new(Issuer::default());
    let old = tokens(&good);
    assert!(old.key(Some("k")).await.is_some());
    let down = Arc::new(Issuer {
        down: true,
        ..Issuer::default()
    });
    let new = tokens(&down);
    new.inherit(&old);
    assert!(new.key(Some("k")).await.is_some());
    assert_eq!(down.fetches.load(Ordering::Relaxed), 1, "one fetch was tried");
    let up = tokens(&good);
    up.inherit(&new);
    assert!(up.key(Some("k")).await.is_some());
    assert_eq!(good.fetches.load(Ordering::Relaxed), 2);
}

/// A key that the test can sign with.
#[derive(Debug)]
struct SharedKey;

#[async_trait]
impl JwksSource for SharedKey {
    fn location(&self) -> String {
        String::from("here")
    }

    async fn fetch(&self) -> Result<String, String> {
        Ok(String::from(
            r#"{"keys": [{"kty": "oct", "k": "c2VjcmV0", "kid": "k"}]}"#,
        ))
    }
}

/// The name of a claim, and what makes its value of a size.
type ClaimOfSize = (&'static str, fn(usize) -> Value);

#[test]
fn tokens_are_checked_in_linear_time() {
    let rules = TokenRules {
        issuer: String::from("i"),
        audience: String::from("a"),
        tenant_claim: String::from("tenant"),
        scope_claim: String::from("scope"),
        leeway_ms: 0,
        rate: None,
        concurrency: None,
    };
    let algorithms = vec![Algorithm(jsonwebtoken::Algorithm::HS256)];
    let verifier = TokenVerifier::new(Arc::new(SharedKey), rules, algorithms);
    let admit = |token: &SecretString| verifier.admit(token, 1).now_or_never().unwrap();
    let changes: [ClaimOfSize; 5] = [
        ("scope", |size| Value::from("runs:write ".repeat(size + 1))),
        ("scope", |size| Value::from(vec!["a"; size])),
        ("aud", |size| Value::from(vec!["a b"; size + 1])),
        ("other", |size| Value::from("\"".repeat(size))),
        ("other", |size| {
            (0..size)
                .map(|index| (format!("c{index}"), Value::Null))
                .collect()
        }),
    ];
    for (claim, value) in changes {
        let token = |size: usize| {
            let mut claims = serde_json::json!({"exp": 100, "iss": "i", "aud": "a", "tenant": "t", "sub": "s", "scope": ""});
            claims[claim] = value(size);
            let mut header = jsonwebtoken::Header::new(jsonwebtoken::Algorithm::HS256);
            header.kid = Some(String::from("k"));
            let key = jsonwebtoken::EncodingKey::from_secret(b"secret");
            SecretString::from(jsonwebtoken::encode(&header, &claims, &key).unwrap())
        };
        assert!(admit(&token(0)).is_some(), "{claim}");
        assert_linear(4_000, token, |token| assert!(admit(&token).is_some()));
    }
}
