//! Several choices in one response (`n`): returned where the back-end supports them; elsewhere the client is
//! warned or refused.

use ir::Dialect;
use serde_json::{Value, json};
use testkit::http::{MockServer, ScriptedResponse, scripted};

use crate::harness::{Server, Stage};
use crate::vendor_client::{ask, body_of, error_of, question, read};

const CHAT: Dialect = Dialect::OpenaiChat;
const SAID: &str = "/n: 3 choices requested, one returned";

fn serve(stage: &Stage, kind: &str, url: &str) -> Server {
    let config = stage.config(&format!(
        "[[backends]]\nname = \"behind\"\nkind = \"{kind}\"\nbase_url = \"{url}\"\nmodel = \"m\"\n\
         features = [\"supports_stream\", \"supports_system_role\"]\n"
    ));
    stage.serve_with(&["--config", &config], &[])
}

fn several(model: &str) -> Value {
    let mut body = question(CHAT, model, "hi");
    body["n"] = json!(3);
    body
}

#[tokio::test]
async fn several_choices_are_passed_through() {
    let choice = |index: u64| json!({"index": index, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"});
    let answer = json!({"id": "c", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [choice(0), choice(1), choice(2)]});
    let upstream = MockServer::with_responses(ScriptedResponse::good("application/json", answer.to_string()));
    let stage = Stage::new();
    let server = serve(&stage, "openai", &upstream.url(""));
    let body = body_of(ask(&server, CHAT, &several("m")).await).await;
    assert_eq!(body, answer);
    // The same back-end with a request that has to be re-encoded: all choices are encoded.
    let mut asked = several("m");
    asked["seed"] = json!(7);
    let body = body_of(ask(&server, CHAT, &asked).await).await;
    let told = body["cogn"]["warnings"].to_string();
    assert!(told.contains("seed") && !told.contains("/n:"), "{body}");
    assert_eq!(body["choices"], answer["choices"]);
}

#[tokio::test]
async fn single_choice_in_place_of_several_is_warned() {
    for (kind, dialect) in [
        ("anthropic", Dialect::Anthropic),
        ("gemini", Dialect::Gemini),
        ("ollama", Dialect::Ollama),
    ] {
        let upstream = scripted(
            dialect,
            &json!([{"reply": "hello", "chunk_bytes": 2}]).to_string(),
        );
        let stage = Stage::new();
        let server = serve(&stage, kind, &upstream.url(""));
        let body = body_of(ask(&server, CHAT, &several("m")).await).await;
        assert_eq!(body["choices"].as_array().unwrap().len(), 1, "{kind}: {body}");
        assert!(
            body["cogn"]["warnings"].to_string().contains(SAID),
            "{kind}: {body}"
        );
        let mut asked = several("m");
        asked["stream"] = json!(true);
        let text = ask(&server, CHAT, &asked).await.text().await.unwrap();
        assert!(text.contains(SAID) && text.contains("[DONE]"), "{kind}: {text}");
        // A request for one choice gets no warning.
        asked["n"] = json!(1);
        let answer = read(CHAT, ask(&server, CHAT, &asked).await).await;
        assert_eq!(
            (answer.text().as_str(), answer.warnings.len()),
            ("hello", 0),
            "{kind}"
        );
    }
}

#[tokio::test]
async fn several_choices_are_refused_for_modules_and_schemas() {
    let stage = Stage::new();
    let server = stage.serve(&[&stage.talker(0)]);
    for streams in [false, true] {
        let mut asked = several("module:counter");
        asked["stream"] = json!(streams);
        let response = ask(&server, CHAT, &asked).await;
        assert_eq!(response.status(), 400);
        let (kind, why) = error_of(CHAT, &body_of(response).await);
        assert_eq!(kind, "invalid_request_error");
        assert_eq!(why, "`n` is 3: a module returns one answer");
    }
    let mut asked = several("any");
    asked["cogn"] = json!({"validate": "check"});
    asked["response_format"] = json!({"type": "json_object"});
    let response = ask(&server, CHAT, &asked).await;
    assert_eq!(response.status(), 400);
    let (_, why) = error_of(CHAT, &body_of(response).await);
    assert_eq!(why, "`n` is 3: schema validation supports one answer");
}
