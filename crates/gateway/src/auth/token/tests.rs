//! An issuer that does not answer as it should.

use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use futures::FutureExt;

use super::*;

/// An issuer that answers, is down, or takes its time.
#[derive(Debug, Default)]
struct Issuer {
    asked: AtomicUsize,
    down: bool,
    slow: bool,
}

#[async_trait]
impl JwksSource for Issuer {
    fn location(&self) -> String {
        String::from("here")
    }

    async fn fetch(&self) -> Result<String, String> {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        if self.slow && asked > 0 {
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
    };
    TokenVerifier::new(issuer.clone(), rules, Vec::new())
}

#[tokio::test(start_paused = true)]
async fn one_that_is_down_is_not_asked_by_everyone() {
    let issuer = Arc::new(Issuer {
        down: true,
        ..Issuer::default()
    });
    let tokens = tokens(&issuer);
    for times in 1..=2 {
        for _ in 0..5 {
            assert!(tokens.key(Some("k")).await.is_none());
        }
        assert_eq!(issuer.asked.load(Ordering::Relaxed), times);
        tokio::time::advance(limits::KEY_SET_PAUSE).await;
    }
}

#[tokio::test(start_paused = true)]
async fn strangers_keep_nobody_waiting() {
    let issuer = Arc::new(Issuer {
        slow: true,
        ..Issuer::default()
    });
    let tokens = tokens(&issuer);
    assert!(tokens.key(Some("k")).await.is_some());
    tokio::time::advance(limits::KEY_SET_PAUSE).await;
    let mut stranger = std::pin::pin!(tokens.key(Some("stranger")));
    assert!(stranger.as_mut().now_or_never().is_none(), "it is fetched again");
    assert!(tokens.key(Some("k")).now_or_never().flatten().is_some());
    // Not even when it has become old meanwhile.
    tokio::time::advance(limits::KEY_SET_AGE_MAX).await;
    assert!(tokens.key(Some("k")).now_or_never().flatten().is_some());
    assert!(stranger.await.is_none());
    assert!(
        tokens.key(Some("stranger")).now_or_never().is_some(),
        "so soon nobody asks again"
    );
    assert_eq!(issuer.asked.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn a_new_configuration_goes_on_with_the_old_keys() {
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
    assert_eq!(down.asked.load(Ordering::Relaxed), 1, "it was tried");
    let up = tokens(&good);
    up.inherit(&new);
    assert!(up.key(Some("k")).await.is_some());
    assert_eq!(good.asked.load(Ordering::Relaxed), 2);
}
