//! Modules called as models: `module:NAME` through every vendor's API.

use std::time::{Duration, Instant};

use ir::Dialect;
use serde_json::{Value, json};

use crate::harness::{Stage, data};
use crate::vendor_client::{DIALECTS, ask, body_of, error_of, is_ended, path, question, read};

/// The envelope next to an answer.
fn beside(dialect: Dialect, text: &str) -> Value {
    let events: Vec<Value> = text
        .lines()
        .filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok())
        .collect();
    let pointer = match dialect {
        Dialect::Anthropic => "/delta/cogn",
        Dialect::OpenaiResponses => "/response/cogn",
        _ => "/cogn",
    };
    let mut found = events.iter().filter_map(|event| event.pointer(pointer));
    found.next_back().cloned().unwrap_or_else(|| panic!("{text}"))
}

#[tokio::test]
async fn module_answers_as_a_model() {
    let stage = Stage::new();
    let server = stage.serve(&[&stage.talker(0)]);
    for dialect in DIALECTS {
        for input in [r#"{"text": "two words"}"#, "two words"] {
            let mut body = question(dialect, "module:counter", input);
            let response = ask(&server, dialect, &body).await;
            assert!(response.headers().contains_key("x-cogn-run"));
            let unstreamed = response.text().await.unwrap();
            let value: Value = serde_json::from_str(&unstreamed).unwrap();
            assert_eq!(value["cogn"]["ok"], true, "{dialect} {input}: {value}");
            assert_eq!(value["cogn"]["data"], data());
            assert_eq!(value["model"], "module:counter");
            let answer = wire::chat::decode_response(dialect, value).unwrap();
            assert_eq!(
                serde_json::from_str::<Value>(&answer.text()).unwrap(),
                data(),
                "{dialect}"
            );

            body["stream"] = json!(true);
            let response = ask(&server, dialect, &body).await;
            let text = response.text().await.unwrap();
            assert!(is_ended(&text), "{text}");
            assert_eq!(beside(dialect, &text)["data"], data(), "{dialect}");
            let again = ask(&server, dialect, &body).await;
            let answer = read(dialect, again).await;
            assert_eq!(
                serde_json::from_str::<Value>(&answer.text()).unwrap(),
                data(),
                "{dialect}"
            );
        }
    }
}

#[tokio::test]
async fn failing_module_is_an_error_of_the_clients_dialect() {
    let stage = Stage::new();
    let bad = json!([{"reply": r#"{"ok":true,"meta":{"confidence":0.9,"risk":"low","explain":"x"},"data":{"rationale":"r","n":"x"}}"#}]);
    let server = stage.serve(&[&stage.script("bad", &bad)]);
    for dialect in DIALECTS {
        // A streaming module may have sent text by then; `vendor_module_stream` tests that.
        for (streams, module) in [(false, "module:counter"), (true, "module:waiter")] {
            let mut body = question(dialect, module, r#"{"text": "x"}"#);
            body["stream"] = json!(streams);
            let response = ask(&server, dialect, &body).await;
            assert!(
                response.status().is_server_error(),
                "{dialect} {}",
                response.status()
            );
            let body = body_of(response).await;
            error_of(dialect, &body);
            assert_eq!(body["cogn"]["ok"], false, "{body}");
            assert_eq!(body["cogn"]["error"]["code"], "E3001", "{body}");
        }
        // Input that does not match the module's schema is a client error.
        let response = ask(
            &server,
            dialect,
            &question(dialect, "module:counter", r#"{"n": 1}"#),
        )
        .await;
        assert_eq!(response.status(), 400, "{dialect}");
        error_of(dialect, &body_of(response).await);
        let mut invalid = question(dialect, "module:counter", "x");
        let field = if dialect == Dialect::OpenaiResponses {
            "input"
        } else {
            "messages"
        };
        invalid[field] = json!([]);
        assert_eq!(ask(&server, dialect, &invalid).await.status(), 400, "{dialect}");
    }
}

/// The same request with the same idempotency key is the same run.
#[tokio::test]
async fn repeated_request_finds_its_run() {
    let stage = Stage::new();
    let server = stage.serve(&[&stage.talker(0)]);
    let ask = |text: &str| {
        let body = question(Dialect::OpenaiChat, "module:counter", text);
        server
            .post(path(Dialect::OpenaiChat))
            .header("idempotency-key", "k1")
            .body(body.to_string())
    };
    let run = |response: &reqwest::Response| String::from(response.headers()["x-cogn-run"].to_str().unwrap());
    let first = ask("two words").send().await.unwrap();
    let second = ask("two words").send().await.unwrap();
    assert_eq!(run(&first), run(&second));
    let other = ask("other words").send().await.unwrap();
    assert_eq!(other.status(), 409);
    error_of(Dialect::OpenaiChat, &body_of(other).await);
}

/// A disconnect before the answer cancels the run.
#[tokio::test]
async fn disconnect_cancels_the_run_of_a_module() {
    let stage = Stage::new();
    let server = stage.serve(&[&stage.talker(500)]);
    let body = question(Dialect::OpenaiChat, "module:counter", "two words");
    let request = server.post(path(Dialect::OpenaiChat)).body(body.to_string());
    let left = request.timeout(Duration::from_millis(700)).send().await;
    assert!(left.is_err(), "the caller disconnected");
    let began = Instant::now();
    loop {
        let runs = body_of(server.get("/v1/runs").send().await.unwrap()).await;
        let run = &runs["data"]["runs"][0];
        if run["state"] == "failed" {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(5), "{runs}");
        tokio::task::yield_now().await;
    }
}
