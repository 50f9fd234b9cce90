//! Errors as vendors' clients receive them: format and status of their vendor, for errors of authentication,
//! of a limit, or of a back-end.

use std::time::Duration;

use ir::Dialect;
use serde_json::{Value, json};
use testkit::http::{MockServer, ScriptedResponse};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::harness::{Server, Stage, input};
use crate::keys::key;
use crate::vendor_client::{DIALECTS, ask, body_of, error_of, path, question, read};

async fn refused(response: reqwest::Response, dialect: Dialect) -> (u16, String, String) {
    let status = response.status().as_u16();
    let (kind, message) = error_of(dialect, &body_of(response).await);
    (status, kind, message)
}

fn kinds(dialect: Dialect, openai: &str, anthropic: &str) -> String {
    String::from(if dialect == Dialect::Anthropic {
        anthropic
    } else {
        openai
    })
}

/// A model that exists but cannot chat is an error of the request, not of the server.
#[tokio::test]
async fn chat_with_an_embedding_model_is_a_bad_request() {
    let stage = Stage::new();
    let backend = |name: &str, more: &str| {
        format!(
            "[[backends]]\nname = \"{name}\"\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:1/v1\"\nmodel = \"{name}\"\n{more}\n"
        )
    };
    let config = stage.config(
        &[
            backend("chatty", ""),
            backend("minilm", "operations = [\"embeddings\"]"),
        ]
        .concat(),
    );
    let server = stage.serve_with(&["--config", &config], &[]);
    let body = json!({"model": "minilm", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 9});
    for path in ["/v1/chat/completions", "/v1/messages", "/v1/responses"] {
        let mut body = body.clone();
        if path == "/v1/responses" {
            body = json!({"model": "minilm", "input": "hi"});
        }
        let answer = server.post(path).body(body.to_string()).send().await.unwrap();
        assert_eq!(answer.status(), 400, "{path}");
        let answer: Value = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(
            message.contains("minilm: does not support chat_completions"),
            "{message}"
        );
    }
}

#[tokio::test]
async fn auth_and_limit_errors_use_the_clients_dialect() {
    let stage = Stage::new();
    let good = key(&stage, &[]);
    let reader = key(&stage, &["--scope", "read"]);
    let narrow = key(&stage, &["--model", "other", "--module", "ticker"]);
    let server = stage.serve_with(&["--require-auth"], &[&stage.talker(0)]);
    for dialect in DIALECTS {
        let post = |key: &str, model: &str| {
            let request = server
                .post(path(dialect))
                .body(question(dialect, model, "hi").to_string());
            match dialect {
                Dialect::Anthropic => request.header("x-api-key", key),
                _ => request.header("authorization", format!("Bearer {key}")),
            }
        };
        let answer = post(&good, "m").send().await.unwrap();
        assert_eq!(answer.status(), 200, "{dialect}");
        let bare = server
            .post(path(dialect))
            .body(question(dialect, "m", "hi").to_string());
        let bare = bare.send().await.unwrap();
        assert_eq!(bare.headers()["www-authenticate"], "Bearer");
        let (status, kind, message) = refused(bare, dialect).await;
        assert_eq!(
            (status, kind),
            (
                401,
                kinds(dialect, "authentication_error", "authentication_error")
            )
        );
        assert!(!message.is_empty());
        for (key, model, status, openai, anthropic) in [
            (
                "nonsense",
                "m",
                401,
                "authentication_error",
                "authentication_error",
            ),
            (reader.as_str(), "m", 403, "permission_error", "permission_error"),
            (narrow.as_str(), "m", 403, "permission_error", "permission_error"),
            (
                narrow.as_str(),
                "module:counter",
                403,
                "permission_error",
                "permission_error",
            ),
            (
                good.as_str(),
                "module:no-such-module",
                404,
                "invalid_request_error",
                "not_found_error",
            ),
        ] {
            let (told, kind, _) = refused(post(key, model).send().await.unwrap(), dialect).await;
            assert_eq!(
                (told, kind),
                (status, kinds(dialect, openai, anthropic)),
                "{dialect} {key} {model}"
            );
        }
    }
}

#[tokio::test]
async fn rate_limit_uses_vendor_headers_and_key_lists_its_models() {
    let stage = Stage::new();
    let slow = key(&stage, &["--rate", "1/h"]);
    let narrow = key(&stage, &["--model", "other", "--module", "ticker"]);
    let server = stage.serve_with(&["--require-auth"], &[&stage.talker(0)]);
    let ask = || {
        let body = question(Dialect::OpenaiChat, "m", "hi");
        server
            .post("/v1/chat/completions")
            .bearer_auth(&slow)
            .body(body.to_string())
    };
    assert_eq!(ask().send().await.unwrap().status(), 200);
    let limited = ask().send().await.unwrap();
    assert!(limited.headers().contains_key("retry-after"));
    let (status, kind, _) = refused(limited, Dialect::OpenaiChat).await;
    assert_eq!((status, kind.as_str()), (429, "rate_limit_error"));
    // A key lists the models it may use.
    let list = server
        .get("/v1/models")
        .bearer_auth(&narrow)
        .send()
        .await
        .unwrap();
    let list = body_of(list).await;
    assert!(list.to_string().contains("module:ticker") && !list.to_string().contains("module:counter"));
    // All other endpoints still return envelopes.
    let other = body_of(server.get("/v1/modules").send().await.unwrap()).await;
    assert_eq!(other["ok"], false);
}

/// Many clients always send a key; a server without required authentication ignores foreign keys.
#[tokio::test]
async fn server_without_required_auth_ignores_foreign_keys() {
    let stage = Stage::new();
    let server = stage.serve(&[&stage.talker(0)]);
    for shown in ["sk-proj-abc", "unused", "a.b.c"] {
        for dialect in DIALECTS {
            let request = server
                .post(path(dialect))
                .body(question(dialect, "m", "hi").to_string());
            let response = request.bearer_auth(shown).send().await.unwrap();
            assert_eq!(response.status(), 200, "{dialect} {shown}");
        }
        let listed = server.get("/v1/modules").bearer_auth(shown).send().await.unwrap();
        assert_eq!(listed.status(), 200, "{shown}");
        let run = server.execute("counter", &input()).bearer_auth(shown);
        assert_eq!(run.send().await.unwrap().status(), 200, "{shown}");
    }
    // A key with our prefix must be valid: a caller with a key expects the rights of that key.
    let elsewhere = key(&Stage::new(), &[]);
    for path in ["/v1/messages", "/v1/modules/counter/execute"] {
        let request = server
            .post(path)
            .body(question(Dialect::Anthropic, "m", "hi").to_string());
        let response = request.header("x-api-key", &elsewhere).send().await.unwrap();
        assert_eq!(response.status(), 401, "{path}");
    }
}

#[tokio::test]
async fn invalid_requests_are_refused_before_any_backend_is_called() {
    let upstream = MockServer::with_responses(ScriptedResponse::nothing());
    let stage = Stage::new();
    let config = stage.config(&format!(
        "[[backends]]\nname = \"b\"\nkind = \"openai\"\nbase_url = \"{}\"\nmodel = \"m\"\n",
        upstream.url("")
    ));
    let server = stage.serve_with(&["--config", &config], &[]);
    for dialect in DIALECTS {
        let field = if dialect == Dialect::OpenaiResponses {
            "input"
        } else {
            "messages"
        };
        for body in [
            String::from("{"),
            String::from("[]"),
            String::new(),
            json!({}).to_string(),
            json!({"model": "m"}).to_string(),
            json!({"model": "m", field: 3}).to_string(),
            json!({"model": "", field: []}).to_string(),
            json!({"model": ["m"], field: []}).to_string(),
            json!({"model": "m", field: [7]}).to_string(),
            json!({"model": "m", field: [{"role": "wizard", "content": "x"}]}).to_string(),
            json!({"model": "m", field: [{"role": "user", "content": {}}]}).to_string(),
            json!({"model": "m", field: [], "cogn": {"validate": "maybe"}}).to_string(),
            format!(
                "{{\"model\": \"m\", \"{field}\": {}{}}}",
                "[".repeat(400),
                "]".repeat(400)
            ),
        ] {
            let response = server
                .post(path(dialect))
                .body(body.clone())
                .send()
                .await
                .unwrap();
            let (status, kind, _) = refused(response, dialect).await;
            assert_eq!(
                (status, kind.as_str()),
                (400, "invalid_request_error"),
                "{dialect} {body}"
            );
        }
        let huge = format!(
            "{{\"model\": \"m\", \"{field}\": \"{}\"}}",
            "x".repeat(17 * 1024 * 1024)
        );
        let response = server.post(path(dialect)).body(huge).send().await.unwrap();
        let (status, kind, _) = refused(response, dialect).await;
        assert_eq!(
            (status, kind),
            (413, kinds(dialect, "invalid_request_error", "request_too_large"))
        );
        let wrong = server.get(path(dialect)).send().await.unwrap();
        let (status, _, _) = refused(wrong, dialect).await;
        assert_eq!(status, 405, "{dialect}");
    }
    assert!(upstream.received().is_empty());
}

/// Responses of a back-end, and the expected status and error kinds of both vendors.
fn refusals() -> Vec<(&'static str, Value, u16, &'static str, &'static str)> {
    let openai =
        |message: &str, code: &str| json!({"error": {"message": message, "type": "t", "code": code}});
    vec![
        (
            "400 Bad",
            openai("no such knob", "bad_knob"),
            400,
            "invalid_request_error",
            "invalid_request_error",
        ),
        (
            "400 Bad",
            openai("too long", "context_length_exceeded"),
            400,
            "invalid_request_error",
            "invalid_request_error",
        ),
        (
            "401 No",
            openai("Incorrect API key sk-secret", "invalid_api_key"),
            502,
            "server_error",
            "api_error",
        ),
        (
            "429 Full",
            openai("you exceeded your current quota", "insufficient_quota"),
            402,
            "insufficient_quota",
            "billing_error",
        ),
        (
            "404 No",
            openai("no model", "model_not_found"),
            404,
            "invalid_request_error",
            "not_found_error",
        ),
        (
            "429 Slow",
            openai("slow down", "rate_limit_exceeded"),
            429,
            "rate_limit_error",
            "rate_limit_error",
        ),
        (
            "500 Oh",
            openai("oh", "server_error"),
            502,
            "server_error",
            "api_error",
        ),
    ]
}

#[tokio::test]
async fn backend_errors_map_to_client_status_and_kind() {
    for (status, body, told, openai_kind, anthropic_kind) in refusals() {
        let body = body.to_string();
        let upstream = MockServer::with_responder(move |_, _| {
            ScriptedResponse::response(
                status,
                &[("content-type", "application/json"), ("retry-after", "0")],
                &body,
            )
        });
        let stage = Stage::new();
        let config = stage.config(&format!(
            "[routing]\nretry = {{ same_backend_max = 0 }}\nbreaker = {{ failures = 1000, failure_ratio = 1.0, open_ms = 1, open_max_ms = 1 }}\n[[backends]]\nname = \"b\"\nkind = \"openai\"\nbase_url = \"{}\"\nmodel = \"m\"\n",
            upstream.url("")
        ));
        let server = stage.serve_with(&["--config", &config], &[]);
        for dialect in DIALECTS {
            for streams in [false, true] {
                let mut body = question(dialect, "m", "hi");
                body["stream"] = json!(streams);
                let response = ask(&server, dialect, &body).await;
                assert!(
                    response.headers().contains_key("x-cogn-run"),
                    "{dialect} {status}"
                );
                assert_eq!(response.headers()["retry-after"], "0", "{dialect} {status}");
                let (code, kind, message) = refused(response, dialect).await;
                assert_eq!(
                    (code, kind),
                    (told, kinds(dialect, openai_kind, anthropic_kind)),
                    "{dialect} {status}"
                );
                assert!(!message.contains("sk-secret"), "{message}");
            }
        }
    }
}

/// Hundreds of malformed bodies: always the vendor's format, never a server error.
#[tokio::test]
async fn malformed_bodies_get_errors_in_vendor_format() {
    let stage = Stage::new();
    let server = stage.serve(&[&stage.talker(0)]);
    let odd = json!([null, true, 0, -1.5, "x", [], {}, [{}], {"a": []}]);
    for dialect in DIALECTS {
        let mut base = question(dialect, "m", "hi");
        base["stream_options"] = json!({});
        let keys = [
            "model",
            "messages",
            "input",
            "tools",
            "tool_choice",
            "stream",
            "stream_options",
            "response_format",
            "temperature",
            "max_tokens",
            "stop",
            "system",
            "metadata",
            "text",
            "reasoning",
            "thinking",
            "cogn",
        ];
        for key in keys {
            for value in odd.as_array().unwrap() {
                let mut body = base.clone();
                body[key] = value.clone();
                check(&server, dialect, &body).await;
            }
        }
    }
}

async fn check(server: &Server, dialect: Dialect, body: &Value) {
    let response = ask(server, dialect, body).await;
    let status = response.status().as_u16();
    match status {
        200 => drop(read(dialect, response).await),
        400..=499 => drop(error_of(dialect, &body_of(response).await)),
        _ => panic!("{dialect} {status} {body}"),
    }
}

/// The embedded model, under the name of the other back-ends of this test.
#[cfg(all(feature = "local", unix))]
fn embedded(stage: &Stage) -> Option<String> {
    let weights = stage.path("m.gguf");
    std::os::unix::fs::symlink(testkit::language_model::small_model(), &weights).unwrap();
    let weights = weights.display();
    Some(format!(
        "[[backends]]\nname = \"embedded\"\nkind = \"local\"\nmodel = \"{weights}\"\n"
    ))
}

#[cfg(not(all(feature = "local", unix)))]
fn embedded(_: &Stage) -> Option<String> {
    None
}

/// No back-end is called: of the same dialect, of another one, or the embedded model.
#[tokio::test]
async fn field_of_wrong_type_is_named_in_the_clients_dialect() {
    let upstream = MockServer::with_responses(ScriptedResponse::response("500 Oops", &[], "{}"));
    let stage = Stage::new();
    let reached = |kind: &str| {
        let url = upstream.url("");
        format!("[[backends]]\nname = \"behind\"\nkind = \"{kind}\"\nbase_url = \"{url}\"\nmodel = \"m\"\n")
    };
    let configs = [reached("openai"), reached("anthropic")];
    for config in configs.into_iter().chain(embedded(&stage)) {
        let server = stage.serve_with(&["--config", &stage.config(&config)], &[]);
        for dialect in DIALECTS {
            for (field, _) in wire::field_type::fields(dialect) {
                // No known field is a list of lists of numbers, so this is invalid for all but list fields.
                let wrong = match field.contains('.') {
                    true => continue,
                    false if ["messages", "tools", "functions", "input", "system"].contains(field) => {
                        json!(7)
                    }
                    false => json!([[7]]),
                };
                let mut body = question(dialect, "m", "hi");
                body[*field] = wrong;
                let response = ask(&server, dialect, &body).await;
                assert_eq!(response.status(), 400, "{dialect} {field}");
                let told = body_of(response).await;
                let (kind, message) = error_of(dialect, &told);
                assert_eq!(kind, "invalid_request_error", "{dialect} {field}");
                assert!(
                    message.starts_with(&format!("`{field}` must be ")),
                    "{dialect}: {message}"
                );
                if dialect != Dialect::Anthropic {
                    assert_eq!(told["error"]["param"], *field);
                }
            }
            let mut hot = question(dialect, "m", "hi");
            hot["temperature"] = json!("hot");
            let (status, _, message) = refused(ask(&server, dialect, &hot).await, dialect).await;
            assert_eq!(status, 400);
            assert_eq!(message, "`temperature` must be a number, and is a string");
        }
    }
    assert!(upstream.received().is_empty());
}

/// A forbidden caller is refused before its body is read: the announced body is never sent.
#[tokio::test]
async fn forbidden_request_is_refused_before_its_body_is_read() {
    let stage = Stage::new();
    let reader = key(&stage, &["--scope", "read"]);
    let server = stage.serve_with(&["--require-auth"], &[&stage.talker(0)]);
    for (path, kind) in [
        ("/v1/chat/completions", "application/json"),
        ("/v1/responses", "application/json"),
        ("/v1/messages", "application/json"),
        ("/v1/messages/count_tokens", "application/json"),
        ("/v1/embeddings", "application/json"),
        ("/v1/images/generations", "application/json"),
        ("/v1/images/edits", "multipart/form-data; boundary=x"),
        ("/v1/audio/speech", "application/json"),
        ("/v1/audio/transcriptions", "multipart/form-data; boundary=x"),
        ("/v1/canonical", "application/json"),
    ] {
        let mut stream = tokio::net::TcpStream::connect(server.address()).await.unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {reader}\r\nContent-Type: {kind}\r\nContent-Length: 100000\r\n\r\n",
            server.address()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut start = [0; 12];
        let answered = tokio::time::timeout(Duration::from_secs(5), stream.read_exact(&mut start)).await;
        assert!(answered.is_ok(), "{path} waits for a body");
        assert_eq!(String::from_utf8_lossy(&start), "HTTP/1.1 403", "{path}");
    }
}
