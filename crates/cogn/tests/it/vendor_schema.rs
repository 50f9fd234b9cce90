//! `response_format` enforced by the server: checked, repaired and reasked, as the client requests.

use ir::Dialect;
use serde_json::{Value, json};

use crate::harness::{Server, Stage};
use crate::vendor_client::{DIALECTS, body_of, is_ended, path, question, read};

fn with_schema(dialect: Dialect, body: Value) -> Value {
    let schema = json!({
        "type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}, "additionalProperties": false
    });
    with_this_schema(dialect, body, &schema)
}

fn with_this_schema(dialect: Dialect, mut body: Value, schema: &Value) -> Value {
    match dialect {
        Dialect::OpenaiResponses => {
            body["text"] = json!({"format": {"type": "json_schema", "name": "count", "schema": schema}});
        }
        Dialect::Anthropic => {
            body["output_config"] = json!({"format": {"type": "json_schema", "schema": schema}});
        }
        _ => {
            body["response_format"] =
                json!({"type": "json_schema", "json_schema": {"name": "count", "schema": schema}});
        }
    }
    body
}

fn ask(server: &Server, dialect: Dialect, wish: &str, streams: bool) -> reqwest::RequestBuilder {
    let mut body = with_schema(dialect, question(dialect, "m", "count"));
    body["stream"] = json!(streams);
    body["cogn"] = json!({"validate": wish});
    server.post(path(dialect)).body(body.to_string())
}

#[tokio::test]
async fn non_matching_answer_is_reasked() {
    for dialect in DIALECTS {
        for streams in [false, true] {
            let stage = Stage::new();
            let script = json!([
                {"match": "does not fit the JSON Schema", "reply": "{\"n\": 3}"},
                {"reply": "{\"n\": \"three\"}"}
            ]);
            let server = stage.serve(&[&stage.script("counts", &script)]);
            let response = ask(&server, dialect, "repair", streams).send().await.unwrap();
            let attempts = response.headers()["x-cogn-attempts"].clone();
            let answer = read(dialect, response).await;
            assert_eq!(answer.text(), "{\"n\": 3}", "{dialect} {streams}");
            assert_eq!(attempts, "2", "{dialect} {answer:?}");
            let response = ask(&server, dialect, "check", streams).send().await.unwrap();
            assert_eq!(response.status(), 422, "{dialect} {streams}");
            let message = body_of(response).await["error"]["message"].to_string();
            assert!(message.contains("/n"), "{message}");
            let response = ask(&server, dialect, "off", streams).send().await.unwrap();
            assert_eq!(read(dialect, response).await.text(), "{\"n\": \"three\"}");
        }
    }
}

#[tokio::test]
async fn json_extracted_is_removed_and_reported() {
    let stage = Stage::new();
    let script = json!([{"reply": "Here you are:\n```json\n{\"n\": 3}\n```"}]);
    let server = stage.serve(&[&stage.script("chatty", &script)]);
    let body = with_schema(Dialect::OpenaiChat, question(Dialect::OpenaiChat, "m", "count"));
    let request = server
        .post(path(Dialect::OpenaiChat))
        .header("x-cogn-validate", "repair");
    let value = body_of(request.body(body.to_string()).send().await.unwrap()).await;
    assert_eq!(value["choices"][0]["message"]["content"], "{\"n\": 3}", "{value}");
    assert_eq!(
        value["cogn"],
        json!({"validated": true, "repairs": ["json_extracted"]})
    );
    let text = ask(&server, Dialect::OpenaiChat, "repair", true)
        .send()
        .await
        .unwrap();
    let text = text.text().await.unwrap();
    assert!(is_ended(&text) && text.contains("json_extracted"), "{text}");
}

#[tokio::test]
async fn answer_that_never_matches_is_refused() {
    let stage = Stage::new();
    let server = stage.serve(&[&stage.script("stubborn", &json!([{"reply": "never"}]))]);
    let response = ask(&server, Dialect::OpenaiChat, "repair", false)
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 422);
    assert_eq!(response.headers()["x-cogn-attempts"], "3");
    let mut body = with_schema(Dialect::OpenaiChat, question(Dialect::OpenaiChat, "m", "count"));
    body["response_format"]["json_schema"]["schema"] = json!({"$ref": "http://127.0.0.1:1/x.json"});
    body["cogn"] = json!({"validate": "check"});
    let response = server
        .post(path(Dialect::OpenaiChat))
        .body(body.to_string())
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 400);
}

/// A schema of `length` definitions, each of which refers to the next one `width` times.
fn reference_chain(length: usize, width: usize) -> Value {
    let mut definitions = serde_json::Map::new();
    for index in 0..length {
        let next = json!({"$ref": format!("#/$defs/d{}", index + 1)});
        definitions.insert(format!("d{index}"), json!({"allOf": vec![next; width]}));
    }
    definitions.insert(format!("d{length}"), json!({"type": "object"}));
    json!({"$ref": "#/$defs/d0", "$defs": definitions})
}

#[tokio::test]
async fn hostile_schemas_are_refused_by_name_of_the_limit() {
    let stage = Stage::new();
    let server = stage.serve(&[&stage.script("any", &json!([{"reply": "{}"}]))]);
    let chat = |schema: &Value| {
        let mut body = question(Dialect::OpenaiChat, "m", "count");
        body["response_format"] =
            json!({"type": "json_schema", "json_schema": {"name": "a", "schema": schema}});
        body
    };
    let send = |body: Value| {
        server
            .post(path(Dialect::OpenaiChat))
            .body(body.to_string())
            .send()
    };
    for (schema, limit) in [
        (reference_chain(15_000, 1), "schema_nodes_max"),
        (reference_chain(400, 1), "schema_reference_path_max"),
        (reference_chain(30, 2), "schema_cost_max"),
    ] {
        let mut checked = chat(&schema);
        checked["cogn"] = json!({"validate": "check"});
        let mut with_tool = question(Dialect::OpenaiChat, "m", "count");
        with_tool["tools"] = json!([{"type": "function", "function": {"name": "f", "parameters": schema}}]);
        for body in [checked, chat(&schema), with_tool] {
            let response = send(body).await.unwrap();
            assert_eq!(response.status(), 400, "{limit}");
            let message = body_of(response).await["error"]["message"].to_string();
            assert!(message.contains(limit), "{message}");
        }
        for dialect in DIALECTS {
            let body = with_this_schema(dialect, question(dialect, "m", "count"), &schema);
            let response = server.post(path(dialect)).body(body.to_string()).send();
            let response = response.await.unwrap();
            assert_eq!(response.status(), 400, "{dialect} {limit}");
            assert!(
                response.text().await.unwrap().contains(limit),
                "{dialect} {limit}"
            );
        }
        let canonical = json!({"version": 1, "operation": "chat_completions", "payload": {
            "model": "m", "messages": [{"role": "user", "content": "count"}],
            "response_format": {"type": "json_schema", "schema": schema},
        }});
        let response = server
            .post("/v1/canonical")
            .body(canonical.to_string())
            .send()
            .await
            .unwrap();
        assert_eq!(response.status(), 400, "{limit}");
        assert!(response.text().await.unwrap().contains(limit), "{limit}");
    }
    let mut ordinary = chat(&reference_chain(5, 2));
    ordinary["cogn"] = json!({"validate": "check"});
    assert_eq!(send(ordinary).await.unwrap().status(), 200);
}
