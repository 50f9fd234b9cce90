use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use engine::port::Upstream;
use futures::StreamExt;
use ir::fold::Fold;
use ir::{ChatRequest, ErrorKind, Event, Feature, Generation, Message, Phase, Request, ResponseFormat, Role};
use providers::{Client, ClientOptions, HttpOptions, HttpUpstream, Timeouts, anthropic, openai};
use secrecy::SecretString;
use serde_json::json;
use tokio::task::LocalSet;

use crate::server::{Server, response};

const CHAT_STREAM: &str = include_str!("../../../wire/tests/fixtures/llama-server/chat-stream.sse");
const CHAT: &str = include_str!("../../../wire/tests/fixtures/llama-server/chat.json");
const MESSAGES_STREAM: &str = include_str!("../../../wire/tests/fixtures/llama-server/messages-stream.sse");
const SSE: &str = "content-type: text/event-stream\r\n";
const JSON: &str = "content-type: application/json\r\n";
const SENTENCE: &str = "The capital of France is Paris.";

fn request() -> Arc<Request> {
    let chat = ChatRequest {
        messages: vec![Message::text(Role::User, "What is the capital of France?")],
        generation: Generation {
            stream: Some(true),
            ..Generation::default()
        },
        response_format: Some(ResponseFormat::JsonSchema {
            name: None,
            description: None,
            schema: json!({"type": "object"}).into(),
            strict: None,
        }),
        ..ChatRequest::default()
    };
    Arc::new(Request::chat("req-1", chat))
}

fn options(base_url: String) -> HttpOptions {
    HttpOptions {
        name: String::from("tested"),
        base_url,
        model: Some(String::from("small")),
        key: Some(SecretString::from("sk-very-secret")),
        features: BTreeSet::from([Feature::JsonSchema, Feature::Stream, Feature::SystemRole]),
        timeouts: Timeouts {
            first_byte: Duration::from_millis(400),
            ..Timeouts::default()
        },
        ..HttpOptions::default()
    }
}

fn client() -> Client {
    let options = ClientOptions {
        connect_timeout: Some(Duration::from_secs(2)),
        ..ClientOptions::default()
    };
    Client::new(&options).expect("a client")
}

fn back_end(base_url: String) -> HttpUpstream {
    openai(client(), options(base_url))
}

async fn events(back_end: &HttpUpstream) -> Vec<Event> {
    back_end.stream(request()).collect().await
}

fn text(events: &[Event]) -> Result<String, ir::Error> {
    let mut fold = Fold::new();
    events.iter().cloned().for_each(|event| fold.push(event));
    fold.finish().map(|response| response.text())
}

fn errors(events: &[Event]) -> Vec<&ir::Error> {
    let mut errors = Vec::new();
    for event in events {
        if let Event::Error { error } = event {
            errors.push(error);
        }
    }
    errors
}

/// Serves a response and returns the one error that it must cause.
async fn failure(answer: Vec<u8>) -> ir::Error {
    let server = Server::playing(answer, Duration::ZERO).await;
    let events = events(&back_end(server.base_url())).await;
    let errors = errors(&events);
    assert_eq!(errors.len(), 1, "{events:?}");
    assert!(matches!(events.last(), Some(Event::Error { .. })), "{events:?}");
    errors[0].clone()
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    LocalSet::new().block_on(&runtime, test);
}

#[test]
fn decodes_text_and_usage_of_recorded_stream() {
    run(async {
        let server = Server::playing(response("200 OK", SSE, CHAT_STREAM), Duration::ZERO).await;
        let events = events(&back_end(server.base_url())).await;
        assert_eq!(text(&events).expect("a whole answer"), SENTENCE);
        let usage = events.iter().rev().find_map(|event| match event {
            Event::Usage { usage } => Some(usage.clone()),
            _ => None,
        });
        assert_eq!(usage.and_then(|usage| usage.output_tokens), Some(8));
        let asked = server.asked().await;
        assert!(asked.starts_with("POST /v1/chat/completions HTTP/1.1"), "{asked}");
        assert!(asked.contains("authorization: Bearer sk-very-secret"), "{asked}");
        assert!(
            asked.contains("\"include_usage\":true") && asked.contains("\"model\":\"small\""),
            "{asked}"
        );
    });
}

#[test]
fn unary_response_to_stream_request_is_accepted() {
    run(async {
        let server = Server::playing(response("200 OK", JSON, CHAT), Duration::ZERO).await;
        let events = events(&back_end(server.base_url())).await;
        assert_eq!(text(&events).expect("a whole answer"), SENTENCE);
    });
}

#[test]
fn anthropic_request_uses_its_path_and_headers() {
    run(async {
        let server = Server::playing(response("200 OK", SSE, MESSAGES_STREAM), Duration::ZERO).await;
        let base_url = format!("http://{}", server.address);
        let client = client();
        let back_end = anthropic(client, options(base_url));
        assert_eq!(text(&events(&back_end).await).expect("a whole answer"), SENTENCE);
        let asked = server.asked().await;
        assert!(asked.starts_with("POST /v1/messages HTTP/1.1"), "{asked}");
        assert!(
            asked.contains("x-api-key: sk-very-secret") && asked.contains("anthropic-version: "),
            "{asked}"
        );
    });
}

#[test]
fn schema_moves_to_prompt_without_native_support() {
    run(async {
        let server = Server::playing(response("200 OK", SSE, CHAT_STREAM), Duration::ZERO).await;
        let client = client();
        let back_end = openai(
            client,
            HttpOptions {
                features: BTreeSet::from([Feature::Stream, Feature::SystemRole]),
                ..options(server.base_url())
            },
        );
        let events = events(&back_end).await;
        assert!(
            matches!(events.first(), Some(Event::Warning { .. })),
            "the change is announced: {events:?}"
        );
        let asked = server.asked().await;
        assert!(
            !asked.contains("response_format") && asked.contains("It must fit this JSON Schema"),
            "{asked}"
        );
    });
}

#[test]
fn status_maps_to_error_kind_with_details() {
    let html = "<html><body>502 Bad Gateway</body></html>";
    let cases = [
        (
            "401 Unauthorized",
            "",
            "{\"error\":{\"message\":\"no\"}}",
            ErrorKind::Auth,
        ),
        ("403 Forbidden", "", "", ErrorKind::Auth),
        (
            "429 Too Many Requests",
            "retry-after: 7\r\n",
            "{}",
            ErrorKind::RateLimited,
        ),
        ("500 Internal Server Error", "", "oops", ErrorKind::Upstream),
        (
            "502 Bad Gateway",
            "content-type: text/html\r\n",
            html,
            ErrorKind::Upstream,
        ),
        ("503 Service Unavailable", "", "", ErrorKind::Upstream),
        ("408 Request Timeout", "", "", ErrorKind::Timeout),
    ];
    run(async {
        for (status, headers, body, kind) in cases {
            let error = failure(response(status, headers, body)).await;
            assert_eq!(error.kind, kind, "{status}: {error:?}");
            assert_eq!(
                error.status,
                status.get(..3).and_then(|code| code.parse().ok()),
                "{status}"
            );
            assert_eq!(error.phase, Phase::BeforeFirstByte, "{status}");
        }
        let limited = failure(response("429 Too Many Requests", "retry-after: 7\r\n", "{}")).await;
        assert_eq!(limited.retry_after_ms, Some(7_000));
        // A date is relative to the `Date` header of the same response, not to the local clock.
        let dates = "date: Sun, 06 Nov 1994 08:49:37 GMT\r\nretry-after: Sun, 06 Nov 1994 08:51:07 GMT\r\n";
        let limited = failure(response("503 Service Unavailable", dates, "{}")).await;
        assert_eq!(limited.retry_after_ms, Some(90_000));
        let past = dates.replace("08:51:07", "08:00:00");
        let limited = failure(response("503 Service Unavailable", &past, "{}")).await;
        assert_eq!(limited.retry_after_ms, Some(0));
        let undated = "retry-after: Sun, 06 Nov 1994 08:51:07 GMT\r\n";
        let limited = failure(response("503 Service Unavailable", undated, "{}")).await;
        assert_eq!(limited.retry_after_ms, None, "undated: not convertible");
    });
}

#[test]
fn error_body_with_status_200_is_an_error() {
    run(async {
        let body = "{\"error\":{\"message\":\"model overloaded\",\"code\":503}}";
        assert_eq!(
            failure(response("200 OK", JSON, body)).await.kind,
            ErrorKind::Upstream
        );
        let stream = "data: {\"error\":{\"message\":\"model overloaded\",\"code\":503}}\n\ndata: [DONE]\n\n";
        assert_eq!(
            failure(response("200 OK", SSE, stream)).await.kind,
            ErrorKind::Upstream
        );
    });
}

#[test]
fn truncated_stream_is_one_error() {
    run(async {
        // After the finish reason the response is complete, with or without the end marker.
        let whole = CHAT_STREAM
            .find("\"finish_reason\":\"stop\"")
            .expect("the recording is complete");
        for cut in (0..whole).step_by(97) {
            let part = CHAT_STREAM.get(..cut).expect("the recording is ASCII");
            let error = failure(response("200 OK", SSE, part)).await;
            assert_eq!(error.kind, ErrorKind::Network, "cut at {cut}: {error:?}");
        }
    });
}

#[test]
fn redirect_is_not_followed() {
    run(async {
        let elsewhere = Server::playing(response("200 OK", SSE, CHAT_STREAM), Duration::ZERO).await;
        let location = format!("location: http://{}/v1/chat/completions\r\n", elsewhere.address);
        let error = failure(response("307 Temporary Redirect", &location, "")).await;
        assert_eq!(error.status, Some(307));
        let asked = tokio::time::timeout(Duration::from_millis(100), elsewhere.asked()).await;
        assert!(asked.is_err(), "the redirect was followed");
    });
}

#[test]
fn distinguishes_timeout_from_refused_connection() {
    run(async {
        let slow = Server::playing(response("200 OK", SSE, CHAT_STREAM), Duration::from_secs(5)).await;
        let events_of_slow = events(&back_end(slow.base_url())).await;
        let error = errors(&events_of_slow)[0];
        assert_eq!(
            (error.kind, error.phase),
            (ErrorKind::Timeout, Phase::BeforeFirstByte)
        );

        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a free port");
        let closed = listener.local_addr().expect("an address");
        drop(listener);
        let events_of_closed = events(&back_end(format!("http://{closed}/v1"))).await;
        let error = errors(&events_of_closed)[0];
        assert_eq!((error.kind, error.phase), (ErrorKind::Network, Phase::BeforeSend));
        assert!(!error.message.contains("sk-very-secret"));
    });
}

#[test]
fn debug_output_hides_the_key() {
    let shown = format!("{:?}", back_end(String::from("http://127.0.0.1:1/v1")));
    assert!(!shown.contains("sk-very-secret"), "{shown}");
}

#[test]
fn calls_reuse_one_connection() {
    run(async {
        let body = CHAT.trim_end();
        let answer = format!(
            "HTTP/1.1 200 OK\r\n{JSON}content-length: {}\r\n\r\n{body}",
            body.len()
        );
        let server = Server::answering_twice(answer.into_bytes()).await;
        let back_end = back_end(server.base_url());
        for _ in 0..2 {
            assert_eq!(text(&events(&back_end).await).expect("a whole answer"), SENTENCE);
        }
        // The server accepted one connection and received both requests on it.
        assert_eq!(
            server.asked().await.matches("POST /v1/chat/completions").count(),
            2
        );
    });
}
