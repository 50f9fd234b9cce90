//! Model names on the canonical API: aliases and modules resolve as they do for vendors' clients.

use serde_json::{Value, json};

use crate::canonical::ask;
use crate::harness::{Stage, input};
use crate::openai_unary::{back_end, vendor};

#[tokio::test]
async fn aliases_resolve_as_for_vendor_clients() {
    let (stage, one, two) = (Stage::new(), vendor(), vendor());
    let operations = "operations = [\"embeddings\"]";
    // Modules are answered by a script; no other back-end answers them.
    let script = stage.talker(0);
    let script = script.strip_prefix("scripted:").unwrap();
    let config = format!(
        "[[backends]]\nname = \"talker\"\nkind = \"scripted\"\nscript = {script:?}\noperations = [\"chat_completions\"]\n{}{}[aliases]\nfast = \"m\"\npinned = {{ model = \"m\", backend = \"two\" }}\nwords = \"module:counter\"\n",
        back_end("one", &one.url(""), operations),
        back_end("two", &two.url(""), operations),
    );
    let server = stage.serve_with(&["--config", &stage.config(&config)], &[]);
    let vectors = |model: &str, routing: Value| json!({"operation": "embeddings", "routing": routing, "payload": {"model": model, "input": "a"}});
    for _ in 0..4 {
        let (status, answer) = ask(&server, &vectors("fast", json!({}))).await;
        assert_eq!(status, 200, "{answer}");
        let (_, answer) = ask(&server, &vectors("pinned", json!({}))).await;
        assert_eq!(answer["backend"]["name"], "two", "{answer}");
    }
    for asked in one.received().iter().chain(&two.received()) {
        assert_eq!(asked.json()["model"], "m");
    }
    // An alias is not widened: a request for a different back-end is refused.
    let (status, answer) = ask(&server, &vectors("pinned", json!({"backend": "one"}))).await;
    assert_eq!(status, 503, "{answer}");
    let (status, answer) = ask(&server, &vectors("words", json!({}))).await;
    assert_eq!(status, 400, "{answer}");

    // A module answers a conversation, by its own name and by an alias.
    for model in ["words", "module:counter"] {
        let mut chat = json!({"request_id": "r", "operation": "chat_completions", "payload": {
            "model": model, "messages": [{"role": "user", "content": input().to_string()}]
        }});
        let (status, answer) = ask(&server, &chat).await;
        assert_eq!(status, 200, "{answer}");
        assert_eq!(answer["request_id"], "r");
        assert_eq!(answer["cogn"]["ok"], true, "{answer}");
        let text = answer["result"]["payload"]["content_parts"][0]["text"]
            .as_str()
            .unwrap();
        assert_eq!(
            serde_json::from_str::<Value>(text).unwrap(),
            answer["cogn"]["data"]
        );
        chat["payload"]["generation"] = json!({"stream": true});
        let response = server
            .post("/v1/canonical")
            .body(chat.to_string())
            .send()
            .await
            .unwrap();
        assert!(response.headers().contains_key("x-cogn-run"));
        let stream = response.text().await.unwrap();
        let events: Vec<Value> = stream
            .lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(events.last().unwrap()["type"], "finish", "{stream}");
        let deltas = events.iter().filter_map(|event| event["delta"]["text"].as_str());
        assert_eq!(deltas.collect::<String>(), text);
    }
    let (status, answer) = ask(
        &server,
        &json!({"operation": "chat_completions", "payload": {"model": "module:missing", "messages": []}}),
    )
    .await;
    assert_eq!(status, 404, "{answer}");
}
