//! Regression tests for defects known from other gateways.

use ir::{Dialect, ErrorKind, Ext};
use providers::{ClientOptions, HttpOptions};
use serde_json::json;
use testkit::http::scripted;

use crate::kinds::{KEY, KINDS, ask, chat, client, error_of, options, run, text};

/// Defect: a request could name another URL, and the key was sent there.
#[test]
fn request_cannot_change_url_or_key() {
    run(async {
        for (open, dialect) in KINDS {
            let trap = scripted(dialect, "- reply: trapped\n");
            let server = scripted(dialect, "- reply: ok\n");
            let url = trap.url("/v1");
            let lure = json!({
                "base_url": url, "url": url, "ws_url": url, "endpoint": url, "api_base": url, "host": url,
                "api_key": "sk-other", "headers": {"authorization": "Bearer sk-other", "host": url},
            });
            let lure = lure.as_object().expect("an object").clone();
            let mut wanted = chat();
            wanted.extra = lure.clone();
            wanted.rest = lure.clone();
            wanted.ext = Ext::of(dialect, lure);
            let back_end = open(client(&ClientOptions::default()), options(&server.url("/base")));
            ask(&back_end, wanted).await;
            assert!(trap.received().is_empty(), "{dialect}: {:?}", trap.received());
            let asked = server.received();
            assert_eq!(asked.len(), 1, "{dialect}");
            assert!(
                asked[0].path().starts_with("/base/"),
                "{dialect}: {}",
                asked[0].head
            );
            assert!(
                asked[0].head.contains(KEY) && !asked[0].head.contains("sk-other"),
                "{dialect}"
            );
            assert_eq!(asked[0].header("host"), Some(server.address.to_string().as_str()));
        }
    });
}

/// Defect: a bound back-end answered in the name of any requested model.
#[test]
fn bound_back_end_rejects_other_models() {
    run(async {
        for (open, dialect) in KINDS {
            let server = scripted(dialect, "- reply: ok\n");
            let back_end = open(client(&ClientOptions::default()), options(&server.url("")));
            let mut wanted = chat();
            wanted.model = Some(String::from("another"));
            let seen = ask(&back_end, wanted).await;
            assert_eq!(error_of(&seen).kind, ErrorKind::NotEnabled, "{dialect}");
            assert!(server.received().is_empty(), "{dialect}");
        }
    });
}

/// Defect: an unbound back-end received no requests as soon as another one was bound to a model.
#[test]
fn unbound_back_end_serves_any_requested_model() {
    run(async {
        for (open, dialect) in KINDS {
            let server = scripted(dialect, "- reply: ok\n");
            let unbound = HttpOptions {
                model: None,
                default_model: Some(String::from("usual")),
                ..options(&server.url(""))
            };
            let back_end = open(client(&ClientOptions::default()), unbound);
            for (asked_for, sent) in [(Some("special"), "special"), (None, "usual")] {
                let mut wanted = chat();
                wanted.model = asked_for.map(String::from);
                assert_eq!(
                    text(&ask(&back_end, wanted).await).as_deref(),
                    Ok("ok"),
                    "{dialect}"
                );
                let last = server.received().pop().expect("a call");
                let named = match dialect {
                    Dialect::Gemini => last.path().contains(&format!("/{sent}:")),
                    _ => last.json()["model"] == sent,
                };
                assert!(named, "{dialect}: {}", last.head);
            }
        }
    });
}

/// Defect: fields with "token" in their name were redacted, and real secrets were not.
#[test]
fn redacts_the_key_but_not_max_tokens() {
    run(async {
        for (open, dialect) in KINDS {
            let server = scripted(dialect, "- reply: ok\n");
            let back_end = open(client(&ClientOptions::default()), options(&server.url("")));
            assert!(!format!("{back_end:?}").contains(KEY), "{dialect}");
            ask(&back_end, chat()).await;
            let body = server.received()[0].text();
            assert!(body.contains("64"), "the limit of tokens arrives: {body}");
            assert!(!body.contains(KEY), "{dialect}: {body}");
        }
    });
}
