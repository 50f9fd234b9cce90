//! The raw response of a back-end next to the canonical response, through `POST /v1/canonical`.

use serde_json::{Value, json};
use testkit::http::{MockServer, ScriptedResponse};

use crate::canonical::ask;
use crate::harness::{Stage, input};
use crate::openai_unary::{ALL, back_end, json_answer, vendor};

const SHOWN: &str = "[server]\nraw_answers = true\n";

fn chat() -> Value {
    json!({
        "operation": "chat_completions", "extra": {"raw": true},
        "payload": {"model": "m", "messages": [{"role": "user", "content": "What is it?"}]}
    })
}

fn openai() -> Value {
    json!({
        "id": "c", "object": "chat.completion", "created": 1, "model": "m", "own": {"x": [1, null]},
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "A sunset."}}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    })
}

fn places(answer: &Value) -> Vec<&str> {
    let entries = answer["adaptations"].as_array().into_iter().flatten();
    entries.filter_map(|one| one["pointer"].as_str()).collect()
}

#[tokio::test]
async fn raw_response_is_included_in_every_dialect() {
    let answers = [
        ("openai", "/v1", openai()),
        (
            "anthropic",
            "",
            json!({
                "id": "msg", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
                "content": [{"type": "text", "text": "A sunset."}], "own": 1,
                "usage": {"input_tokens": 7, "output_tokens": 3}
            }),
        ),
        (
            "gemini",
            "",
            json!({
                "candidates": [{"content": {"role": "model", "parts": [{"text": "A sunset."}]}, "finishReason": "STOP"}],
                "usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 3, "totalTokenCount": 10},
                "modelVersion": "m", "own": 1
            }),
        ),
        (
            "ollama",
            "",
            json!({
                "model": "m", "created_at": "2026-01-01T00:00:00Z", "done": true, "done_reason": "stop", "own": 1,
                "message": {"role": "assistant", "content": "A sunset."}, "prompt_eval_count": 7, "eval_count": 3
            }),
        ),
    ];
    for (kind, path, said) in answers {
        let stage = Stage::new();
        let upstream = MockServer::with_responses(json_answer(&said));
        let url = upstream.url(path);
        let config =
            format!("{SHOWN}[[backends]]\nname = \"one\"\nkind = \"{kind}\"\nbase_url = \"{url}\"\n");
        let server = stage.serve_with(&["--config", &stage.config(&config)], &[]);
        let (status, answer) = ask(&server, &chat()).await;
        assert_eq!(status, 200, "{kind}: {answer}");
        assert_eq!(answer["raw"], said, "{kind}");
        assert_eq!(
            answer["result"]["payload"]["content_parts"][0]["text"],
            "A sunset."
        );
        assert!(!places(&answer).contains(&"/extra/raw"), "{answer}");
        let mut plain = chat();
        plain["extra"] = json!({});
        let (_, answer) = ask(&server, &plain).await;
        assert!(answer.get("raw").is_none(), "{answer}");
    }
}

#[tokio::test]
async fn unrequested_stream_is_included_as_list() {
    let chunk = |delta: Value, end: Value| {
        json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": end}]})
    };
    let said = [
        chunk(json!({"role": "assistant", "content": "A "}), Value::Null),
        chunk(json!({"content": "sunset."}), Value::Null),
        chunk(json!({}), json!("stop")),
    ];
    let frames: String = said.iter().map(|one| format!("data: {one}\n\n")).collect();
    let body = format!("{frames}data: [DONE]\n\n");
    let (stage, upstream) = (
        Stage::new(),
        MockServer::with_responses(ScriptedResponse::good("text/event-stream", body)),
    );
    let config = back_end("one", &upstream.url(""), SHOWN);
    let server = stage.serve_with(&["--config", &stage.config(&config)], &[]);
    let (status, answer) = ask(&server, &chat()).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["raw"], json!(said));
    assert_eq!(
        answer["result"]["payload"]["content_parts"][0]["text"],
        "A sunset."
    );
}

#[tokio::test]
async fn raw_response_is_of_the_succeeded_attempt_only() {
    let stage = Stage::new();
    // Its response is JSON, but not a valid completion.
    let first = MockServer::with_responses(json_answer(&json!({"choices": "none", "secret": "first"})));
    let second = MockServer::with_responses(json_answer(&openai()));
    let config = format!(
        "[routing]\npolicy = \"priority\"\n{SHOWN}{}{}",
        back_end("first", &first.url(""), "priority = 10"),
        back_end("second", &second.url(""), ""),
    );
    let server = stage.serve_with(&["--config", &stage.config(&config)], &[]);
    let mut request = chat();
    request["routing"] = json!({"preferred_backends": ["first"]});
    let (status, answer) = ask(&server, &request).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(first.received().len(), 1);
    assert_eq!(answer["backend"]["name"], "second");
    assert_eq!(answer["raw"], openai());
    assert!(!answer.to_string().contains("secret"));
}

#[tokio::test]
async fn missing_raw_response_is_reported() {
    let (stage, upstream) = (Stage::new(), vendor());
    let script = stage.talker(0);
    let script = script.strip_prefix("scripted:").unwrap();
    let config = format!(
        "{SHOWN}[[backends]]\nname = \"talker\"\nkind = \"scripted\"\nscript = {script:?}\noperations = [\"chat_completions\"]\n{}",
        back_end("vendor", &upstream.url(""), &format!("operations = {ALL}")),
    );
    let server = stage.serve_with(&["--config", &stage.config(&config)], &[]);
    let mut scripted = chat();
    scripted["routing"] = json!({"backend": "talker"});
    let speech = json!({
        "operation": "text_to_speech", "extra": {"raw": true}, "payload": {"model": "m", "input": "Hi"}
    });
    for request in [scripted, speech] {
        let (status, answer) = ask(&server, &request).await;
        assert_eq!(status, 200, "{answer}");
        assert!(answer.get("raw").is_none(), "{answer}");
        assert_eq!(places(&answer), ["/extra/raw"], "{answer}");
    }
    let mut streamed = chat();
    streamed["payload"]["generation"] = json!({"stream": true});
    streamed["routing"] = json!({"backend": "vendor"});
    let response = server.post("/v1/canonical").body(streamed.to_string());
    let text = response.send().await.unwrap().text().await.unwrap();
    let first: Value =
        serde_json::from_str(text.lines().next().unwrap().strip_prefix("data: ").unwrap()).unwrap();
    assert_eq!(first["type"], "warning", "{text}");
    let message = first["warning"]["message"].as_str().unwrap();
    assert!(message.starts_with("/extra/raw: "), "{text}");
    assert!(
        !text.contains("\"type\":\"raw\"") && text.contains("A sunset."),
        "{text}"
    );
}

#[tokio::test]
async fn raw_response_is_not_included_without_host_permission() {
    let (stage, upstream) = (Stage::new(), vendor());
    let server = stage.serve_with(
        &[
            "--config",
            &stage.config(&back_end("vendor", &upstream.url(""), "")),
        ],
        &[],
    );
    let (status, answer) = ask(&server, &chat()).await;
    assert_eq!(status, 200, "{answer}");
    assert!(answer.get("raw").is_none());
    assert_eq!(places(&answer), ["/extra/raw"]);
}

#[tokio::test]
async fn module_has_no_raw_response() {
    let stage = Stage::new();
    let script = stage.talker(0);
    let server = stage.serve_with(&["--config", &stage.config(SHOWN)], &[&script]);
    let mut request = chat();
    request["payload"]["model"] = json!("module:counter");
    request["payload"]["messages"][0]["content"] = json!(input().to_string());
    let (status, answer) = ask(&server, &request).await;
    assert_eq!(status, 200, "{answer}");
    assert!(answer.get("raw").is_none());
    assert_eq!(places(&answer), ["/extra/raw"]);
}
