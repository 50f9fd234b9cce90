//! Tool emulation for back-ends without native tools: tools are described in the prompt, calls have an agreed
//! form, and the client receives tool calls in its own dialect.

use ir::event::FinishReason;
use ir::{Dialect, Event, Fold};
use serde_json::{Value, json};
use testkit::http::{MockServer, scripted};

use crate::harness::{Server, Stage};
use crate::vendor_client::{DIALECTS, ask, body_of, error_of, path, question, read, with_tool};

const KINDS: [(&str, Dialect); 4] = [
    ("openai", Dialect::OpenaiChat),
    ("anthropic", Dialect::Anthropic),
    ("gemini", Dialect::Gemini),
    ("ollama", Dialect::Ollama),
];

const CALL: &str = r#"{"calls": [{"tool": "weather", "arguments": {"city": "Bern"}}]}"#;
const NEARLY: &str = r#"{"calls": [{"tool": "weather", "arguments": {"city": "Bern"}}]} I hope."#;

fn script() -> String {
    let answers = json!([
        {"match": "in Bern", "reply": CALL, "chunk_bytes": 5},
        {"match": "in Basel", "reply": NEARLY, "chunk_bytes": 5},
        {"reply": "Hello, Größe", "chunk_bytes": 3}
    ]);
    answers.to_string()
}

fn serve(stage: &Stage, kind: &str, upstream: &MockServer) -> Server {
    let config = format!(
        "[[backends]]\nname = \"plain\"\nkind = \"{kind}\"\nbase_url = \"{}\"\nmodel = \"m\"\nfeatures = [\"supports_stream\"]\n",
        upstream.url("")
    );
    stage.serve_with(&["--config", &stage.config(&config)], &[])
}

#[tokio::test]
async fn every_client_gets_tool_calls_from_backend_without_tools() {
    for (kind, dialect) in KINDS {
        let upstream = scripted(dialect, &script());
        let stage = Stage::new();
        let server = serve(&stage, kind, &upstream);
        for caller in DIALECTS {
            let mut ids = Vec::new();
            for streams in [false, true] {
                let ask_for = async |text: &str| {
                    let mut body = with_tool(caller, question(caller, "m", text));
                    body["stream"] = json!(streams);
                    ask(&server, caller, &body).await
                };
                let answer = read(caller, ask_for("the weather in Bern").await).await;
                let calls: Vec<_> = answer.tool_calls().collect();
                assert_eq!(calls.len(), 1, "{kind} {caller} {streams}: {answer:?}");
                assert_eq!(calls[0].name, "weather");
                assert_eq!(calls[0].arguments, Some(json!({"city": "Bern"})));
                assert_eq!(answer.text(), "", "{kind} {caller} {streams}");
                assert_eq!(
                    answer.finish_reason,
                    Some(FinishReason::ToolCalls),
                    "{kind} {caller} {streams}"
                );
                ids.push(calls[0].id.clone());

                let answer = read(caller, ask_for("the weather in Basel").await).await;
                assert_eq!(answer.text(), NEARLY, "{kind} {caller} {streams}");
                assert_eq!(answer.finish_reason, Some(FinishReason::Stop));

                let text = ask_for("hi").await.text().await.unwrap();
                assert!(
                    text.contains("/payload/tools: the back-end does not support tools"),
                    "{kind} {caller} {streams}: {text}"
                );
            }
            assert!(!ids[0].is_empty() && ids[0] != ids[1], "{ids:?}");
        }
        for asked in upstream.received() {
            let body = asked.json();
            assert!(body.get("tools").is_none(), "{kind}: {body}");
            assert!(body.to_string().contains("You can call tools."), "{kind}: {body}");
        }
    }
}

/// The next turn: calls and results, as the model wrote them and as text that it can read.
#[tokio::test]
async fn conversation_with_tool_results_is_sent_as_text() {
    let upstream = scripted(Dialect::OpenaiChat, "- reply: It rains.\n");
    let stage = Stage::new();
    let server = serve(&stage, "openai", &upstream);
    let openai = json!({"model": "m", "messages": [
        {"role": "user", "content": "the weather"},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{\"city\":\"Bern\"}"}}]},
        {"role": "tool", "tool_call_id": "call_1", "content": "rain"}
    ]});
    let responses = json!({"model": "m", "input": [
        {"role": "user", "content": "the weather"},
        {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": "{\"city\":\"Bern\"}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "rain"}
    ]});
    let anthropic = json!({"model": "m", "max_tokens": 100, "messages": [
        {"role": "user", "content": "the weather"},
        {"role": "assistant", "content": [
            {"type": "tool_use", "id": "call_1", "name": "weather", "input": {"city": "Bern"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": "rain"}]}
    ]});
    for (caller, body) in [
        (Dialect::OpenaiChat, openai),
        (Dialect::OpenaiResponses, responses),
        (Dialect::Anthropic, anthropic),
    ] {
        let answer = read(caller, ask(&server, caller, &with_tool(caller, body)).await).await;
        assert_eq!(answer.text(), "It rains.", "{caller}");
        let sent = upstream.received().pop().unwrap().json();
        let turns: Vec<(&str, &str)> = sent["messages"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|message| {
                (
                    message["role"].as_str().unwrap(),
                    message["content"].as_str().unwrap(),
                )
            })
            .collect();
        let [("system", prompt), asked, called, result_turn] = turns.as_slice() else {
            panic!("{caller}: {sent}");
        };
        assert!(prompt.starts_with("You can call tools."), "{prompt}");
        assert_eq!(*asked, ("user", "the weather"), "{caller}");
        let call = r#"{"calls":[{"tool":"weather","arguments":{"city":"Bern"}}]}"#;
        assert_eq!(*called, ("assistant", call), "{caller}");
        let result = r#"{"results":[{"call":1,"tool":"weather","content":"rain"}]}"#;
        assert_eq!(*result_turn, ("user", result), "{caller}");
    }
}

fn canonical(text: &str) -> Value {
    json!({"request_id": "r", "operation": "chat_completions", "payload": {
        "model": "m",
        "messages": [{"role": "user", "content": text}],
        "tools": [{"name": "weather", "parameters": {"type": "object"}}]
    }})
}

async fn ask_canonical(server: &Server, request: &Value) -> (u16, Value) {
    let response = server.post("/v1/canonical").body(request.to_string()).send();
    let response = response.await.unwrap();
    (response.status().as_u16(), body_of(response).await)
}

#[tokio::test]
async fn canonical_response_reports_emulation() {
    let upstream = scripted(Dialect::OpenaiChat, &script());
    let stage = Stage::new();
    let server = serve(&stage, "openai", &upstream);
    let (status, answer) = ask_canonical(&server, &canonical("the weather in Bern")).await;
    assert_eq!(status, 200, "{answer}");
    let payload = &answer["result"]["payload"];
    assert_eq!(payload["finish_reason"], "tool_calls");
    let part = &payload["content_parts"][0];
    assert_eq!(part["type"], "tool_call", "{answer}");
    let places: Vec<&str> = answer["adaptations"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|one| one["pointer"].as_str())
        .collect();
    assert!(places.contains(&"/payload/tools"), "{answer}");

    let response = server
        .post("/v1/canonical")
        .header("accept", "application/x-ndjson")
        .body(canonical("the weather in Bern").to_string())
        .send();
    let text = response.await.unwrap().text().await.unwrap();
    let mut fold = Fold::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        fold.push(serde_json::from_str::<Event>(line).unwrap());
    }
    let answer = fold.finish().unwrap();
    assert_eq!(answer.tool_calls().count(), 1, "{text}");
    assert_eq!(answer.finish_reason, Some(FinishReason::ToolCalls));
    let warned = answer
        .warnings
        .iter()
        .any(|one| one.message.starts_with("/payload/tools"));
    assert!(warned, "{text}");
}

#[tokio::test]
async fn emulation_is_refused_in_strict_mode() {
    let upstream = scripted(Dialect::OpenaiChat, &script());
    let stage = Stage::new();
    let server = serve(&stage, "openai", &upstream);
    let mut strict = canonical("the weather in Bern");
    strict["degradation"] = json!("strict");
    let mut but_tools = canonical("the weather in Bern");
    but_tools["degradation_overrides"] = json!({"supports_tools": "strict"});
    let mut declared = canonical("the weather in Bern");
    declared["requirements"] = json!({"required_features": ["supports_tools"]});
    for request in [strict, but_tools, declared] {
        let (status, answer) = ask_canonical(&server, &request).await;
        assert_eq!(status, 400, "{answer}");
        let error = &answer["result"]["error"];
        assert_eq!(error["code"], "MissingCapabilities", "{answer}");
        assert_eq!(
            error["rejected_reasons"]["plain"], "lacks supports_tools",
            "{answer}"
        );
    }
    for caller in DIALECTS {
        let mut body = with_tool(caller, question(caller, "m", "the weather in Bern"));
        let refused = server
            .post(path(caller))
            .header("x-cogn-degradation", "strict")
            .body(body.to_string());
        let refused = refused.send().await.unwrap();
        assert_eq!(refused.status(), 400, "{caller}");
        body["cogn"] = json!({"degradation": "strict"});
        let refused = ask(&server, caller, &body).await;
        assert_eq!(refused.status(), 400, "{caller}");
        let (_, message) = error_of(caller, &body_of(refused).await);
        assert!(message.contains("no back-end supports"), "{caller}: {message}");
        body["cogn"] = json!({"degradation": "strictly"});
        assert_eq!(ask(&server, caller, &body).await.status(), 400, "{caller}");
    }
    assert!(upstream.received().is_empty());
}

/// A model without native tools, constrained by a grammar to the form of a call.
#[cfg(all(feature = "local", unix))]
#[tokio::test]
async fn embedded_model_calls_a_tool() {
    let stage = Stage::new();
    let weights = stage.path("embedded.gguf");
    std::os::unix::fs::symlink(testkit::language_model::small_model(), &weights).unwrap();
    let config = format!(
        "[[backends]]\nname = \"embedded\"\nkind = \"local\"\nmodel = \"{}\"\n",
        weights.display()
    );
    let server = stage.serve_with(&["--config", &stage.config(&config)], &[]);
    let schema = json!({
        "type": "object", "properties": {"city": {"enum": ["Bern", "Basel"]}},
        "required": ["city"], "additionalProperties": false
    });
    let mut body = json!({
        "model": "embedded", "temperature": 0, "max_tokens": 200, "parallel_tool_calls": false,
        "messages": [{"role": "user", "content": "What is the weather in Bern?"}],
        "tools": [{"type": "function", "function": {"name": "weather", "parameters": schema}}],
        "tool_choice": {"type": "function", "function": {"name": "weather"}}
    });
    for streams in [false, true] {
        body["stream"] = json!(streams);
        let answer = read(
            Dialect::OpenaiChat,
            ask(&server, Dialect::OpenaiChat, &body).await,
        )
        .await;
        let calls: Vec<_> = answer.tool_calls().collect();
        assert_eq!(calls.len(), 1, "{answer:?}");
        assert_eq!(calls[0].name, "weather");
        let city = calls[0]
            .arguments
            .as_ref()
            .map(|arguments| arguments["city"].clone());
        assert!(
            [json!("Bern"), json!("Basel")].contains(&city.unwrap()),
            "{answer:?}"
        );
        assert_eq!(answer.finish_reason, Some(FinishReason::ToolCalls), "{streams}");
    }
}
