//! Every kind of back-end against the same script, served in its own dialect over real sockets.

use std::collections::BTreeSet;

use ir::{Dialect, ErrorKind, Event, ResponseFormat};
use providers::{ClientOptions, HttpOptions, Proxy};
use serde_json::json;
use testkit::http::{MockServer, ScriptedResponse, scripted};

use crate::kinds::{KEY, KINDS, ask, chat, client, error_of, options, run, text};

#[test]
fn same_script_works_in_every_dialect() {
    let script = "- {match: capital, reply: 'It is Paris.', chunk_bytes: 3}\n";
    run(async {
        for (open, dialect) in KINDS {
            let server = scripted(dialect, script);
            let client = client(&ClientOptions::default());
            for streams in [true, false] {
                let back_end = open(client.clone(), options(&server.url("")));
                let mut chat = chat();
                chat.generation.stream = Some(streams);
                let seen = ask(&back_end, chat).await;
                assert_eq!(text(&seen).as_deref(), Ok("It is Paris."), "{dialect}: {seen:?}");
            }
        }
    });
}

#[test]
fn each_kind_uses_its_path_and_key_header() {
    let places = [
        ("/chat/completions", "authorization", format!("Bearer {KEY}")),
        ("/v1/messages", "x-api-key", String::from(KEY)),
        (
            "/v1beta/models/small:streamGenerateContent?alt=sse",
            "x-goog-api-key",
            String::from(KEY),
        ),
        ("/api/chat", "authorization", format!("Bearer {KEY}")),
    ];
    run(async {
        for ((open, dialect), (path, header, value)) in KINDS.into_iter().zip(places) {
            let server = scripted(dialect, "- reply: ok\n");
            let mut options = options(&server.url("/base/"));
            options
                .headers
                .insert(String::from("X-Title"), String::from("tests"));
            let back_end = open(client(&ClientOptions::default()), options);
            ask(&back_end, chat()).await;
            let asked = server.received();
            assert_eq!(asked[0].path(), format!("/base{path}"));
            assert_eq!(asked[0].header(header), Some(value.as_str()), "{dialect}");
            assert_eq!(asked[0].header("x-title"), Some("tests"));
            assert!(!asked[0].path().contains(KEY));
        }
    });
}

#[test]
fn errors_carry_status_and_retry_delay_in_every_dialect() {
    let script = "- {status: 429, headers: {Retry-After: '3'}, times: 1}\n- {status: 503}\n";
    run(async {
        for (open, dialect) in KINDS {
            let server = scripted(dialect, script);
            let back_end = open(client(&ClientOptions::default()), options(&server.url("")));
            let first = ask(&back_end, chat()).await;
            let error = error_of(&first);
            assert_eq!(error.kind, ErrorKind::RateLimited, "{dialect}: {error:?}");
            assert_eq!(error.retry_after_ms, Some(3000), "{dialect}: {error:?}");
            let second = ask(&back_end, chat()).await;
            assert_eq!(error_of(&second).status, Some(503), "{dialect}");
        }
    });
}

#[test]
fn undeclared_features_are_not_used() {
    run(async {
        for (open, dialect) in KINDS {
            let server = scripted(dialect, "- reply: '{}'\n");
            let bare = HttpOptions {
                features: BTreeSet::new(),
                ..options(&server.url(""))
            };
            let back_end = open(client(&ClientOptions::default()), bare);
            let mut wanted = chat();
            wanted.generation.seed = Some(7.into());
            wanted.response_format = Some(ResponseFormat::JsonSchema {
                name: None,
                description: None,
                schema: json!({"type": "object", "title": "the-schema"}).into(),
                strict: None,
            });
            let seen = ask(&back_end, wanted.clone()).await;
            assert_eq!(text(&seen).as_deref(), Ok("{}"), "{dialect}: {seen:?}");
            let warnings = seen.iter().filter(|event| matches!(event, Event::Warning { .. }));
            assert!(warnings.count() >= 3, "every change is announced: {seen:?}");
            let asked = server.received()[0].clone();
            let body = asked.text();
            for unwanted in [
                "response_format",
                "\"format\"",
                "responseSchema",
                "responseJsonSchema",
                "seed",
                "\"stream\":true",
            ] {
                assert!(!body.contains(unwanted), "{dialect}: {unwanted} in {body}");
            }
            assert!(!asked.path().contains("stream"), "{}", asked.path());
            assert!(body.contains("the-schema"), "the schema is in the prompt: {body}");
            assert!(
                !body.contains("\"system\"") && !body.contains("systemInstruction"),
                "{body}"
            );
            assert!(body.contains("Answer in one sentence."), "{body}");

            // Tools are not emulated by this adapter.
            wanted.tools = serde_json::from_value(json!([{"name": "look"}])).expect("a tool");
            let seen = ask(&back_end, wanted).await;
            assert_eq!(error_of(&seen).kind, ErrorKind::Unsupported, "{dialect}");
        }
    });
}

#[test]
fn schema_is_sent_natively_if_supported() {
    let words = ["json_schema", "", "responseJsonSchema", "\"format\""];
    run(async {
        for ((open, dialect), word) in KINDS.into_iter().zip(words) {
            if dialect == Dialect::Anthropic {
                continue;
            }
            let server = scripted(dialect, "- reply: '{}'\n");
            let back_end = open(client(&ClientOptions::default()), options(&server.url("")));
            let mut wanted = chat();
            wanted.response_format = Some(ResponseFormat::JsonSchema {
                name: Some(String::from("answer")),
                description: None,
                schema: json!({"type": "object", "properties": {"a": {"type": "string"}}}).into(),
                strict: None,
            });
            ask(&back_end, wanted).await;
            let body = server.received()[0].text();
            assert!(
                body.contains(word) || body.contains("responseSchema"),
                "{dialect}: {body}"
            );
            assert!(
                !body.contains("It must fit this JSON Schema"),
                "{dialect}: {body}"
            );
        }
    });
}

#[test]
fn uses_sole_model_of_server_and_requires_choice_among_several() {
    run(async {
        for (open, dialect) in KINDS {
            let server = scripted(dialect, "- reply: ok\n");
            let unbound = HttpOptions {
                model: None,
                ..options(&server.url(""))
            };
            let back_end = open(client(&ClientOptions::default()), unbound);
            assert_eq!(back_end.models().await, Ok(vec![String::from("scripted")]));
            assert_eq!(
                text(&ask(&back_end, chat()).await).as_deref(),
                Ok("ok"),
                "{dialect}"
            );
            let last = server.received().pop().expect("a call");
            assert!(
                last.text().contains("\"scripted\"") || last.path().contains("/scripted:"),
                "{last:?}"
            );

            let many = json!({"data": [{"id": "a"}, {"id": "b"}], "models": [{"name": "a"}, {"name": "b"}]});
            let server =
                MockServer::with_responses(ScriptedResponse::good("application/json", many.to_string()));
            let unbound = HttpOptions {
                model: None,
                ..options(&server.url(""))
            };
            let back_end = open(client(&ClientOptions::default()), unbound);
            let seen = ask(&back_end, chat()).await;
            let error = error_of(&seen);
            assert_eq!(error.kind, ErrorKind::ModelRequired);
            assert!(error.message.contains("a, b"), "{error:?}");
            assert!(error.message.contains("`model`"), "{error:?}");
        }
    });
}

#[test]
fn proxy_is_used_unless_host_is_exempt() {
    run(async {
        let server = scripted(Dialect::OpenaiChat, "- reply: direct\n");
        let proxy = scripted(Dialect::OpenaiChat, "- reply: by proxy\n");
        for (except, expected) in [("", "by proxy"), ("127.0.0.1", "direct")] {
            let way = ClientOptions {
                proxy: Some(Proxy {
                    http: Some(proxy.url("")),
                    except: String::from(except),
                    credential: Some(format!("me:{KEY}-of-proxy").into()),
                    ..Proxy::default()
                }),
                ..ClientOptions::default()
            };
            assert!(!format!("{way:?}").contains(KEY));
            let back_end = providers::openai(client(&way), options(&server.url("")));
            assert_eq!(text(&ask(&back_end, chat()).await).as_deref(), Ok(expected));
        }
        let seen = proxy.received();
        assert!(
            seen[0]
                .head
                .starts_with(&format!("POST {}/chat/completions", server.url("")))
        );
        assert!(seen[0].header("proxy-authorization").is_some());
    });
}

#[test]
fn invalid_certificates_are_rejected() {
    for pem in [
        "",
        "no certificate",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    ] {
        let way = ClientOptions {
            ca_pem: vec![pem.as_bytes().to_vec()],
            ..ClientOptions::default()
        };
        assert!(providers::Client::new(&way).is_err(), "{pem}");
    }
}
