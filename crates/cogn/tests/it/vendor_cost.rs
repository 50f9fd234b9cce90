//! The cost header of a response: from the back-end or from configured prices, exact to the digit, and absent
//! if unknown.

use ir::Dialect;
use reqwest::Response;
use serde_json::{Value, json};
use testkit::http::{MockServer, scripted};

use crate::harness::{Server, Stage};
use crate::openai_unary::{ALL, back_end, form, json_answer, vendor, wav};
use crate::vendor_client::{DIALECTS, ask, body_of, question};

const PRICE: &str = "price = { input_usd = 0.15, output_usd = 0.6 }";

fn serve(stage: &Stage, upstream: &MockServer, more: &str) -> Server {
    let more = format!("operations = {ALL}\n{more}");
    let config = stage.config(&back_end("vendor", &upstream.url(""), &more));
    stage.serve_with(&["--config", &config], &[])
}

fn cost(response: &Response) -> Option<&str> {
    assert_eq!(response.status(), 200);
    let cost = response.headers().get("x-cogn-cost-usd")?;
    Some(cost.to_str().unwrap())
}

/// A server whose response reports this usage.
fn using(usage: Value) -> MockServer {
    MockServer::with_responder(move |_, _| {
        json_answer(&json!({
            "id": "c", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hi."}}],
            "usage": usage
        }))
    })
}

#[tokio::test]
async fn unstreamed_response_reports_its_cost() {
    let (stage, upstream) = (Stage::new(), vendor());
    let server = serve(&stage, &upstream, PRICE);
    for dialect in DIALECTS {
        // 7 tokens in, 3 out.
        let response = ask(&server, dialect, &question(dialect, "m", "hi")).await;
        assert_eq!(cost(&response), Some("0.00000285"), "{dialect}");
        // The body is unchanged.
        let body = body_of(response).await.to_string();
        assert!(!body.contains("cost"), "{body}");
    }
    let post = async |path: &str, body: Value| {
        let response = server.post(path).body(body.to_string()).send().await.unwrap();
        cost(&response).map(String::from)
    };
    let embedded = post("/v1/embeddings", json!({"model": "m", "input": "a"})).await;
    assert_eq!(
        embedded.as_deref(),
        Some("0.00000045"),
        "3 tokens in, and vectors out"
    );
    let drawn = post("/v1/images/generations", json!({"model": "m", "prompt": "a"})).await;
    assert_eq!(drawn.as_deref(), Some("0.00006075"), "5 tokens in, 100 out");
    // Operations not measured in tokens have no token price.
    let spoken = post(
        "/v1/audio/speech",
        json!({"model": "m", "input": "a", "voice": "v"}),
    )
    .await;
    assert_eq!(spoken, None);
    let transcription = form(
        server.post("/v1/audio/transcriptions"),
        &[("file", &wav(1))],
        &[("model", "m")],
    );
    assert_eq!(cost(&transcription.send().await.unwrap()), None);
}

#[tokio::test]
async fn unknown_cost_is_not_reported() {
    let cached = json!({"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11,
        "prompt_tokens_details": {"cached_tokens": 4}});
    let plain = json!({"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11});
    let with_cost = json!({"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11, "cost": 0.0123});
    let with_cache = "price = { input_usd = 0.15, cached_input_usd = 0.075, output_usd = 0.6 }";
    let cases = [
        (&plain, "", None),
        (&plain, PRICE, Some("0.0000021")),
        (&plain, "price = { input_usd = 0.15 }", None),
        (&json!(null), PRICE, None),
        (&cached, PRICE, None),
        (&cached, with_cache, Some("0.0000018")),
        // The cost reported by the back-end overrides the price list.
        (&with_cost, "", Some("0.0123")),
        (&with_cost, PRICE, Some("0.0123")),
    ];
    let dialect = Dialect::OpenaiChat;
    for (usage, price, expected) in cases {
        let (stage, upstream) = (Stage::new(), using(usage.clone()));
        let server = serve(&stage, &upstream, price);
        let response = ask(&server, dialect, &question(dialect, "m", "hi")).await;
        assert_eq!(cost(&response), expected, "{usage} {price}");
    }
}

#[tokio::test]
async fn stream_has_no_cost_header() {
    let stage = Stage::new();
    let script = json!([{"events": [
        {"type": "block_start", "index": 0, "block": {"kind": "text"}},
        {"type": "block_delta", "index": 0, "delta": {"kind": "text", "text": "Hi."}},
        {"type": "block_end", "index": 0},
        {"type": "usage", "usage": {"input_tokens": 7, "output_tokens": 3}},
        {"type": "finish", "reason": "stop"}
    ]}]);
    let upstream = scripted(Dialect::OpenaiChat, &script.to_string());
    let server = serve(&stage, &upstream, PRICE);
    for dialect in DIALECTS {
        for streams in [true, false] {
            let mut body = question(dialect, "m", "hi");
            body["stream"] = json!(streams);
            let response = ask(&server, dialect, &body).await;
            let expected = (!streams).then_some("0.00000285");
            assert_eq!(cost(&response), expected, "{dialect}");
            let text = response.text().await.unwrap();
            assert!(text.contains("Hi.") && !text.contains("cost"), "{text}");
        }
    }
}

/// A reasked answer costs both attempts.
#[tokio::test]
async fn reask_is_charged_too() {
    let answers = ["not json", "{\"n\": 1}"];
    let upstream = MockServer::with_responder(move |before, _| {
        json_answer(&json!({
            "id": "c", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [{"index": 0, "finish_reason": "stop",
                "message": {"role": "assistant", "content": answers[before.min(1)]}}],
            "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
        }))
    });
    let stage = Stage::new();
    let server = serve(&stage, &upstream, PRICE);
    let dialect = Dialect::OpenaiChat;
    let mut body = question(dialect, "m", "hi");
    let schema = json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
    body["response_format"] = json!({"type": "json_schema", "json_schema": {"name": "n", "schema": schema}});
    body["cogn"] = json!({"validate": "repair"});
    let response = ask(&server, dialect, &body).await;
    assert_eq!(response.headers()["x-cogn-attempts"], "2");
    assert_eq!(cost(&response), Some("0.00000570"));
}
