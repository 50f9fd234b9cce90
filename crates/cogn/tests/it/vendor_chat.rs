//! OpenAI and Anthropic requests against every kind of back-end: streamed and unstreamed, text and tools. The
//! client receives its own dialect for every back-end.

use ir::Dialect;
use ir::event::FinishReason;
use serde_json::{Value, json};
use testkit::http::{MockServer, ScriptedResponse, scripted};

use crate::harness::{Server, Stage};
use crate::vendor_client::{DIALECTS, ask, body_of, is_ended, path, question, read, with_tool};

const KINDS: [(&str, Dialect); 4] = [
    ("openai", Dialect::OpenaiChat),
    ("anthropic", Dialect::Anthropic),
    ("gemini", Dialect::Gemini),
    ("ollama", Dialect::Ollama),
];

/// A tool call that every dialect can represent.
fn call() -> Value {
    json!([
        {"type": "started", "id": "x", "model": "m"},
        {"type": "block_start", "index": 0, "block": {"kind": "tool_call", "id": "call_1", "name": "weather"}},
        {"type": "block_delta", "index": 0, "delta": {"kind": "tool_arguments", "json": "{\"city\":\"Bern\"}"}},
        {"type": "block_end", "index": 0},
        {"type": "usage", "usage": {"input_tokens": 11, "output_tokens": 7}},
        {"type": "finish", "reason": "tool_calls"}
    ])
}

fn script() -> String {
    let answer = json!([
        {"match": "weather", "events": call()},
        {"reply": "Hello, Größe", "chunk_bytes": 3}
    ]);
    answer.to_string()
}

/// Failures are intended here, so no back-end may be skipped because of them.
const PATIENT: &str =
    "[routing]\nretry = {same_backend_max = 0}\nbreaker = {failures = 1000, failure_ratio = 1.0}\n";

fn configured(kind: &str, url: &str) -> String {
    format!(
        "[[backends]]\nname = \"behind\"\nkind = \"{kind}\"\nbase_url = \"{url}\"\nmodel = \"m\"\nfeatures = [\"supports_stream\", \"supports_tools\", \"supports_json_schema\", \"supports_seed\"]\n"
    )
}

fn serve(stage: &Stage, config: &str) -> Server {
    let config = stage.config(config);
    stage.serve_with(&["--config", &config], &[])
}

#[tokio::test]
async fn every_client_is_answered_by_every_backend_in_its_dialect() {
    for (kind, dialect) in KINDS {
        let upstream = scripted(dialect, &script());
        let stage = Stage::new();
        let server = serve(&stage, &configured(kind, &upstream.url("")));
        for caller in DIALECTS {
            for streams in [false, true] {
                let mut text = question(caller, "m", "hi");
                text["stream"] = json!(streams);
                let response = ask(&server, caller, &text).await;
                for header in ["x-cogn-run", "x-cogn-backend", "x-cogn-attempts"] {
                    assert!(
                        response.headers().contains_key(header),
                        "{kind} {caller} {header}"
                    );
                }
                assert_eq!(response.headers()["x-cogn-backend"], "behind");
                let answer = read(caller, response).await;
                assert_eq!(answer.text(), "Hello, Größe", "{kind} {caller} {streams}");
                assert_eq!(answer.finish_reason, Some(FinishReason::Stop), "{kind} {caller}");
                // With the same dialect on both sides this is a passthrough.
                if caller != dialect {
                    assert_eq!(answer.model.as_deref(), Some("m"), "{kind} {caller} {streams}");
                }

                let mut tool = with_tool(caller, question(caller, "m", "the weather in Bern"));
                tool["stream"] = json!(streams);
                let answer = read(caller, ask(&server, caller, &tool).await).await;
                let calls: Vec<_> = answer.tool_calls().collect();
                assert_eq!(calls.len(), 1, "{kind} {caller} {streams}: {answer:?}");
                assert_eq!(calls[0].name, "weather");
                assert_eq!(calls[0].arguments, Some(json!({"city": "Bern"})));
                assert_eq!(
                    answer.finish_reason,
                    Some(FinishReason::ToolCalls),
                    "{kind} {caller}"
                );
            }
        }
        let asked = upstream.received();
        assert!(asked.iter().all(|asked| !asked.text().contains("cogn")), "{kind}");
    }
}

/// The result of a tool call is sent to the model in the next turn.
#[tokio::test]
async fn tool_results_reach_the_backend() {
    let upstream = scripted(Dialect::Anthropic, "- reply: done\n");
    let stage = Stage::new();
    let server = serve(&stage, &configured("anthropic", &upstream.url("")));
    let body = json!({"model": "m", "messages": [
        {"role": "user", "content": "the weather"},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "call_1", "content": "rain"}
    ]});
    let body = with_tool(Dialect::OpenaiChat, body);
    let answer = read(
        Dialect::OpenaiChat,
        ask(&server, Dialect::OpenaiChat, &body).await,
    )
    .await;
    assert_eq!(answer.text(), "done");
    let sent = upstream.received().last().unwrap().json();
    assert_eq!(sent["messages"][2]["content"][0]["type"], "tool_result", "{sent}");
    assert_eq!(sent["messages"][2]["content"][0]["tool_use_id"], "call_1");
}

/// Passthrough does not change any byte.
#[tokio::test]
async fn same_dialect_is_passed_through_byte_for_byte() {
    let whole = r#"{"id":"chatcmpl-x", "object":"chat.completion","created":3,"model":"m",  "choices":[{"index":0,"message":{"role":"assistant","content":"hi","odd":1},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}, "service_tier":"x"}"#;
    let stream = concat!(
        "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"odd\":[1,  2],\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"hi\"}}]}\n\n",
        "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
        "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2,\"total_tokens\":3}}\n\n",
        "data: [DONE]\n\n"
    );
    let upstream = MockServer::with_responder(move |_, asked| match asked.json()["stream"] == true {
        true => ScriptedResponse::good("text/event-stream", stream),
        false => ScriptedResponse::good("application/json", whole),
    });
    let stage = Stage::new();
    let server = serve(&stage, &configured("openai", &upstream.url("")));
    let caller = Dialect::OpenaiChat;
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}], "unheard_of": {"a": 1}});
    let text = ask(&server, caller, &body).await.text().await.unwrap();
    assert_eq!(text, whole);
    let mut asking = body.clone();
    asking["stream"] = json!(true);
    asking["stream_options"] = json!({"include_usage": true});
    let text = ask(&server, caller, &asking).await.text().await.unwrap();
    assert_eq!(text, stream);
    // Without a request for usage the client gets none, and it is recorded nevertheless.
    asking["stream_options"] = json!({});
    let text = ask(&server, caller, &asking).await.text().await.unwrap();
    assert!(!text.contains("usage") && is_ended(&text), "{text}");
    let sent = upstream.received()[0].json();
    assert_eq!(sent["unheard_of"], json!({"a": 1}), "{sent}");
}

#[tokio::test]
async fn aliases_resolve_to_models_and_a_pinned_backend() {
    let upstream = scripted(Dialect::OpenaiChat, &script());
    let stage = Stage::new();
    let config = configured("openai", &upstream.url(""));
    let aliases = "[aliases]\nfast = \"m\"\n\"gpt-4o\" = { model = \"m\", backend = \"behind\" }\nwords = \"module:counter\"\n";
    let server = serve(&stage, &format!("{config}{aliases}"));
    for name in ["m", "fast", "gpt-4o"] {
        let answer = ask(
            &server,
            Dialect::OpenaiChat,
            &question(Dialect::OpenaiChat, name, "hi"),
        )
        .await;
        assert_eq!(
            read(Dialect::OpenaiChat, answer).await.text(),
            "Hello, Größe",
            "{name}"
        );
    }
    for asked in upstream.received() {
        assert_eq!(asked.json()["model"], "m");
    }
    let list = body_of(server.get("/v1/models").send().await.unwrap()).await;
    let ids: Vec<&str> = list["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| model["id"].as_str().unwrap())
        .collect();
    for id in ["m", "fast", "gpt-4o", "words", "module:counter"] {
        assert!(ids.contains(&id), "{id} in {ids:?}");
        let one = server.get(&format!("/v1/models/{id}")).send().await.unwrap();
        assert_eq!(one.status(), 200, "{id}");
        assert_eq!(body_of(one).await["id"], id);
    }
    let not_found = ask(
        &server,
        Dialect::OpenaiChat,
        &question(Dialect::OpenaiChat, "gpt-9", "hi"),
    )
    .await;
    assert_eq!(not_found.status(), 404);
    assert_eq!(body_of(not_found).await["error"]["code"], "model_not_found");
    assert_eq!(server.get("/v1/models/gpt-9").send().await.unwrap().status(), 404);
    // A misspelt name is answered with the most similar one.
    for (model, near) in [("wrods", "words"), ("module:countr", "counter")] {
        for dialect in [Dialect::OpenaiChat, Dialect::Anthropic] {
            let answer = ask(&server, dialect, &question(dialect, model, "hi")).await;
            assert_eq!(answer.status(), 404, "{model}");
            let message = body_of(answer).await["error"]["message"].to_string();
            assert!(message.contains(&format!("did you mean `{near}`?")), "{message}");
        }
    }
    let answer = body_of(
        server
            .execute("countr", &crate::harness::input())
            .send()
            .await
            .unwrap(),
    )
    .await;
    assert_eq!(answer["error"]["code"], "E4006");
    assert_eq!(answer["error"]["details"]["did_you_mean"], "counter", "{answer}");
}

#[tokio::test]
async fn failover_before_the_first_output() {
    let broken = MockServer::with_responses(ScriptedResponse::response("503 Busy", &[], "later"));
    let good = scripted(Dialect::Anthropic, &script());
    let stage = Stage::new();
    let config = format!(
        "[routing]\npolicy = \"priority\"\nretry = {{ same_backend_max = 0 }}\n\
         [[backends]]\nname = \"broken\"\nkind = \"openai\"\nbase_url = \"{}\"\nmodel = \"m\"\npriority = 1\n{}",
        broken.url(""),
        configured("anthropic", &good.url(""))
    );
    let server = serve(&stage, &config);
    for caller in DIALECTS {
        for streams in [false, true] {
            let mut body = question(caller, "m", "hi");
            body["stream"] = json!(streams);
            let response = ask(&server, caller, &body).await;
            assert_eq!(
                response.headers()["x-cogn-backend"],
                "behind",
                "{caller} {streams}"
            );
            assert_eq!(read(caller, response).await.text(), "Hello, Größe");
        }
    }
}

/// An interrupted stream ends in an error, never in the terminator of a successful stream.
#[tokio::test]
async fn interrupted_stream_ends_in_an_error_of_the_clients_dialect() {
    for (kind, dialect) in KINDS {
        let upstream = scripted(
            dialect,
            "- reply: Hello there\n  chunk_bytes: 3\n  cut_after_bytes: 6\n",
        );
        let stage = Stage::new();
        let server = serve(
            &stage,
            &format!("{PATIENT}{}", configured(kind, &upstream.url(""))),
        );
        for caller in DIALECTS {
            let mut body = question(caller, "m", "hi");
            body["stream"] = json!(true);
            let response = ask(&server, caller, &body).await;
            assert_eq!(response.status(), 200, "{kind} {caller}");
            let text = response.text().await.unwrap();
            assert!(text.contains("Hel"), "{kind} {caller}: {text}");
            assert!(!is_ended(&text), "{kind} {caller}: {text}");
            assert!(
                text.contains("\"error\"") || text.contains("event: error"),
                "{kind} {caller}: {text}"
            );
            // The same interruption of an unstreamed response has a status.
            body["stream"] = json!(false);
            let response = ask(&server, caller, &body).await;
            assert_eq!(response.status().as_u16() / 100, 5, "{kind} {caller}");
        }
    }
}

#[tokio::test]
async fn responses_are_not_stored_and_report_it() {
    let upstream = scripted(Dialect::OpenaiChat, &script());
    let stage = Stage::new();
    let server = serve(&stage, &configured("openai", &upstream.url("")));
    let caller = Dialect::OpenaiResponses;
    for (key, value) in [
        ("previous_response_id", json!("resp_1")),
        ("conversation", json!("conv_1")),
        ("background", json!(true)),
    ] {
        let mut body = question(caller, "m", "hi");
        body[key] = value;
        let refused = ask(&server, caller, &body).await;
        assert_eq!(refused.status(), 400, "{key}");
        assert!(
            body_of(refused).await["error"]["message"]
                .as_str()
                .unwrap()
                .contains(key)
        );
    }
    let mut body = question(caller, "m", "hi");
    body["store"] = json!(true);
    let answer = body_of(ask(&server, caller, &body).await).await;
    assert_eq!(answer["store"], false);
    assert_eq!(answer["cogn"]["warnings"][0]["code"], "not_stored", "{answer}");
    // Fields required by the vendor's typed clients.
    assert_eq!(answer["output"][0]["content"][0]["annotations"], json!([]));
    for key in [
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "metadata",
        "usage",
        "error",
    ] {
        assert!(answer.get(key).is_some(), "{key}: {answer}");
    }
    assert!(answer["id"].as_str().unwrap().starts_with("resp_"), "{answer}");
}

/// Images and audio are sent to the model in its dialect.
#[tokio::test]
async fn media_is_encoded_in_the_dialect_of_the_backend() {
    let upstream = scripted(Dialect::Anthropic, "- reply: seen\n");
    let stage = Stage::new();
    let mut config = configured("anthropic", &upstream.url(""));
    config = config.replace("\"supports_seed\"", "\"supports_image_input\"");
    let server = serve(&stage, &config);
    let pixel =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let body = json!({"model": "m", "messages": [{"role": "user", "content": [
        {"type": "text", "text": "what is this?"},
        {"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{pixel}")}}
    ]}]});
    let answer = ask(&server, Dialect::OpenaiChat, &body).await;
    assert_eq!(read(Dialect::OpenaiChat, answer).await.text(), "seen");
    let sent = upstream.received().last().unwrap().json();
    assert_eq!(
        sent["messages"][0]["content"][1]["source"]["data"], pixel,
        "{sent}"
    );
    // No back-end here accepts audio.
    let sound = json!({"model": "m", "messages": [{"role": "user", "content": [
        {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}]}]});
    let refused = server
        .post(path(Dialect::OpenaiChat))
        .body(sound.to_string())
        .send()
        .await
        .unwrap();
    assert!(
        refused.status().is_client_error() || refused.status() == 503,
        "{}",
        refused.status()
    );
}

#[tokio::test]
async fn tokens_are_counted_by_the_backend_or_estimated() {
    let counting = MockServer::with_responder(|_, asked| match asked.path().ends_with("/count_tokens") {
        true => ScriptedResponse::good("application/json", r#"{"input_tokens": 41}"#),
        false => ScriptedResponse::nothing(),
    });
    let silent = scripted(Dialect::OpenaiChat, &script());
    let stage = Stage::new();
    let other = configured("openai", &silent.url(""))
        .replace("\"m\"", "\"n\"")
        .replace("behind", "other");
    let server = serve(
        &stage,
        &format!("{}{other}", configured("anthropic", &counting.url(""))),
    );
    let mut body = question(Dialect::Anthropic, "m", "hello");
    body["system"] = json!("be brief");
    let count = |body: &Value| server.post("/v1/messages/count_tokens").body(body.to_string());
    let counted = body_of(count(&body).send().await.unwrap()).await;
    assert_eq!(counted, json!({"input_tokens": 41}));
    let sent = counting.received()[0].json();
    assert_eq!(
        (&sent["system"], sent.get("max_tokens")),
        (&json!("be brief"), None),
        "{sent}"
    );
    body["model"] = json!("n");
    let estimated = body_of(count(&body).send().await.unwrap()).await;
    assert_eq!(estimated["cogn"], json!({"estimated": true}));
    assert!(estimated["input_tokens"].as_u64().unwrap() > 0, "{estimated}");
    // Each count is a call in the accounts, by client, without tokens.
    let usage = body_of(server.get("/v1/usage?by=model").send().await.unwrap()).await;
    let lines = usage["data"]["lines"].as_array().unwrap();
    for model in ["m", "n"] {
        let line = lines.iter().find(|line| line["model"] == model);
        let line = line.unwrap_or_else(|| panic!("{model} is not in {usage}"));
        assert_eq!(
            (&line["runs"], &line["attempts"]),
            (&json!(1), &json!(1)),
            "{usage}"
        );
        assert_eq!(
            (&line["input_tokens"], &line["unknown"]),
            (&json!(0), &json!(0)),
            "{usage}"
        );
    }
    body["model"] = json!("no-such-model");
    let unknown = count(&body).send().await.unwrap();
    assert_eq!(unknown.status(), 404);
    assert_eq!(body_of(unknown).await["error"]["type"], "not_found_error");
}
