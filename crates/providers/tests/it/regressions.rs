//! Mistakes that others made, tried here. Each test says in its name what must not happen.

use ir::{Dialect, ErrorKind, Ext};
use providers::{ClientOptions, HttpOptions};
use serde_json::json;
use testkit::http::scripted;

use crate::kinds::{KEY, KINDS, ask, chat, client, error_of, options, run, text};

/// Somewhere else, a request once named another address, and the key went there.
#[test]
fn nothing_in_a_request_moves_its_address_or_its_key() {
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

/// Somewhere else, a bound back-end answered in the name of whichever model was asked for.
#[test]
fn no_model_answers_under_the_name_of_another() {
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

/// Somewhere else, an unbound back-end lost its requests as soon as another one was bound to a model.
#[test]
fn an_unbound_back_end_answers_with_whatever_is_asked_for() {
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

/// Somewhere else, everything with "token" in its name was taken for a secret, and real secrets were not.
#[test]
fn the_key_is_hidden_and_the_limit_of_tokens_is_not() {
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
