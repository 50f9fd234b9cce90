//! What a caller gets wrong is answered with 400 and never counts against a back-end: no sequence of bad
//! requests changes the answer for another caller.

use serde_json::{Value, json};
use testkit::http::{MockServer, ReceivedRequest, ScriptedResponse};

use crate::harness::{REPLY, Server, Stage, input};
use crate::openai_unary::{back_end, json_of};

/// A server with several models, of which some answer only with errors that their request caused.
pub(crate) fn several_models() -> MockServer {
    MockServer::with_responder(|_, asked| {
        if asked.path() == "/v1/models" {
            let models: Vec<Value> = ["a", "b"].iter().map(|id| json!({"id": id})).collect();
            return ScriptedResponse::good("application/json", json!({"data": models}).to_string());
        }
        answer(asked)
    })
}

fn answer(asked: &ReceivedRequest) -> ScriptedResponse {
    let body = asked.json();
    let error = |status: &str, kind: &str, message: &str| {
        let body = json!({"error": {"message": message, "type": kind, "code": kind}});
        ScriptedResponse::response(status, &[("content-type", "application/json")], body.to_string())
    };
    match body["model"].as_str().unwrap_or_default() {
        "gated" => error("403 Forbidden", "permission_denied", "no access to this model"),
        "private" => error("401 Unauthorized", "invalid_api_key", "log in"),
        "unknown" => error("404 Not Found", "model_not_found", "no such model"),
        "invalid" => error("400 Bad Request", "invalid_request_error", "temperature"),
        "long" => error("413 Payload Too Large", "too_large", "the body"),
        "minute" => error(
            "429 Too Many Requests",
            "rate_limit_exceeded",
            "Request too large for m on tokens per min (TPM): Limit 10, Requested 20",
        ),
        "unpaid" => error("402 Payment Required", "insufficient_quota", "this model"),
        _ if body["stream"] == true => {
            let piece =
                json!({"choices": [{"index": 0, "delta": {"content": REPLY}, "finish_reason": "stop"}]});
            ScriptedResponse::good("text/event-stream", format!("data: {piece}\n\ndata: [DONE]\n\n"))
        }
        _ => {
            let message = json!({"role": "assistant", "content": REPLY});
            let body = json!({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]});
            ScriptedResponse::good("application/json", body.to_string())
        }
    }
}

fn serve(stage: &Stage, upstream: &MockServer) -> Server {
    let config = back_end("vendor", &upstream.url(""), "");
    stage.serve_with(&["--config", &stage.config(&config)], &[])
}

async fn post(server: &Server, (path, body): &(String, Value)) -> (u16, Value) {
    let response = server.post(path).body(body.to_string()).send().await.unwrap();
    (response.status().as_u16(), json_of(response).await)
}

fn run(model: Option<&str>) -> (String, Value) {
    let options = model.map_or(json!({}), |model| json!({"model": model}));
    let body = json!({"input": input(), "_options": options});
    (String::from("/v1/modules/counter/execute"), body)
}

fn chat(model: &str) -> (String, Value) {
    let messages = json!([{"role": "user", "content": "hi"}]);
    let body = json!({"model": model, "messages": messages});
    (String::from("/v1/chat/completions"), body)
}

fn canonical(model: Option<&str>) -> (String, Value) {
    let mut payload = json!({"messages": [{"role": "user", "content": "hi"}]});
    if let Some(model) = model {
        payload["model"] = json!(model);
    }
    let body = json!({"version": 1, "request_id": "r", "operation": "chat_completions", "payload": payload});
    (String::from("/v1/canonical"), body)
}

#[tokio::test]
async fn missing_model_is_400_and_says_which_there_are() {
    let (stage, upstream) = (Stage::new(), several_models());
    let server = serve(&stage, &upstream);
    for _ in 0..8 {
        for question in [run(None), canonical(None)] {
            let (status, body) = post(&server, &question).await;
            assert_eq!(status, 400, "{body}");
            let message = body.to_string();
            assert!(
                message.contains("has 2: a, b") || message.contains("has 2: b, a"),
                "{body}"
            );
            assert!(message.contains("_options.model"), "{body}");
        }
    }
    let mut nameless = chat("");
    let (status, body) = post(&server, &nameless).await;
    assert_eq!(status, 400, "{body}");
    let message = body["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("`model` is missing") && message.contains("/v1/models"),
        "{body}"
    );
    assert!(message.contains("module:counter"), "{body}");
    nameless.1 = json!({});
    assert_eq!(post(&server, &nameless).await.0, 400);
    for question in [run(Some("a")), chat("a"), canonical(Some("b"))] {
        let (status, body) = post(&server, &question).await;
        assert_eq!(status, 200, "{body}");
    }
}

#[tokio::test]
async fn no_sequence_of_bad_requests_changes_the_answer_for_another() {
    let (stage, upstream) = (Stage::new(), several_models());
    let server = serve(&stage, &upstream);
    let models = [
        "gated", "private", "unknown", "invalid", "long", "minute", "unpaid",
    ];
    let mut bad = vec![
        run(None),
        canonical(None),
        chat(""),
        (String::from("/v1/canonical"), json!({})),
        (
            String::from("/v1/embeddings"),
            json!({"input": "x", "model": "unknown"}),
        ),
    ];
    for model in models {
        bad.extend([run(Some(model)), chat(model), canonical(Some(model))]);
    }
    let mut state = 7_u64;
    for number in 0..150 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        // Runs of the same bad request are as likely as changes.
        let index = if state >> 63 == 0 {
            number / 6
        } else {
            (state >> 33) as usize
        };
        let question = &bad[index % bad.len()];
        let (status, body) = post(&server, question).await;
        assert!(status >= 400, "{question:?}: {body}");
        let good = match number % 3 {
            0 => chat("a"),
            1 => canonical(Some("a")),
            _ => run(Some("a")),
        };
        let (status, body) = post(&server, &good).await;
        assert_eq!(status, 200, "after {question:?}: {body}");
    }
}
