//! Streaming modules called as models: the text of `data` is sent while the module writes it, does not depend
//! on chunk boundaries, and is never retracted.

use ir::{Delta, Dialect, Event};
use serde_json::{Value, json};

use crate::harness::{REPLY, Server, Stage, data};
use crate::vendor_client::{DIALECTS, ask, body_of, events, is_ended, question, read};

fn streamed(dialect: Dialect, module: &str) -> Value {
    let mut body = question(dialect, &format!("module:{module}"), r#"{"text": "two words"}"#);
    body["stream"] = json!(true);
    body
}

/// The text deltas of a stream, as its clients receive them.
fn pieces(dialect: Dialect, stream: &[u8]) -> Vec<String> {
    let texts = events(dialect, stream)
        .into_iter()
        .filter_map(|event| match event {
            Event::BlockDelta {
                delta: Delta::Text { text },
                ..
            } => Some(text),
            _ => None,
        });
    texts.collect()
}

/// The text of an unstreamed response.
async fn whole(server: &Server, dialect: Dialect) -> String {
    let body = question(dialect, "module:counter", r#"{"text": "two words"}"#);
    read(dialect, ask(server, dialect, &body).await).await.text()
}

/// A stream that ended in an error: the text sent before, and the error.
async fn failed(server: &Server, dialect: Dialect, module: &str) -> (String, String) {
    let response = ask(server, dialect, &streamed(dialect, module)).await;
    assert_eq!(response.status(), 200, "{dialect}");
    let bytes = response.bytes().await.unwrap();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    assert!(!is_ended(&text), "{dialect}: {text}");
    let last = events(dialect, &bytes).pop();
    let Some(Event::Error { error }) = last else {
        panic!("{dialect}: {text}");
    };
    (pieces(dialect, &bytes).concat(), error.message)
}

fn reply(data: &Value) -> String {
    let meta = json!({"confidence": 0.9, "risk": "low", "explain": "x"});
    json!({"ok": true, "meta": meta, "data": data}).to_string()
}

/// Two back-ends, in order of priority.
fn pair(stage: &Stage, first: &Value, second: &Value, more: &str) -> Server {
    let file = |name: &str, exchange: &Value| {
        let script = stage.script(name, &json!([exchange]));
        String::from(script.strip_prefix("scripted:").unwrap())
    };
    let config = stage.config(&format!(
        "[routing]\npolicy = \"priority\"\nretry = {{same_backend_max = 0}}\n\
         [[backends]]\nname = \"first\"\nkind = \"scripted\"\nscript = {:?}\npriority = 1\n\
         [[backends]]\nname = \"second\"\nkind = \"scripted\"\nscript = {:?}\n{more}",
        file("first", first),
        file("second", second),
    ));
    stage.serve_with(&["--config", &config], &[])
}

#[tokio::test]
async fn text_is_streamed_while_the_module_writes() {
    let stage = Stage::new();
    let server = stage.serve(&[&stage.talker(25)]);
    for dialect in DIALECTS {
        let mut response = ask(&server, dialect, &streamed(dialect, "counter")).await;
        assert_eq!(response.status(), 200);
        assert!(response.headers().contains_key("x-cogn-run"));
        let (mut stream, mut grown) = (Vec::new(), Vec::new());
        while let Some(bytes) = response.chunk().await.unwrap() {
            stream.extend_from_slice(&bytes);
            let text = pieces(dialect, &stream).concat();
            let ended = is_ended(&String::from_utf8_lossy(&stream));
            if !ended && grown.last() != Some(&text) {
                grown.push(text);
            }
        }
        assert!(grown.len() > 5, "{dialect}: {grown:?}");
        let text = pieces(dialect, &stream).concat();
        assert!(
            grown.iter().all(|early| text.starts_with(early)),
            "{dialect}: {grown:?}"
        );
        assert_eq!(text, data().to_string(), "{dialect}");
        assert_eq!(text, whole(&server, dialect).await, "{dialect}");
    }
}

#[tokio::test]
async fn streamed_text_is_independent_of_chunk_boundaries() {
    let data = json!({
        "rationale": "Größe \"q\" \\ \u{1}\n日本 😀", "n": -3, "x": 1.5e-7, "none": null, "yes": true, "empty": "",
        "list": [[], {}, [1, [2, {"a.b": ["c\"d"]}]], ""], "deep": {"e": {}, "": {"t": "end"}}
    });
    for bytes in [1, 2, 3, 5, 11, 64, 4096] {
        let stage = Stage::new();
        let script = json!([{"reply": reply(&data), "chunk_bytes": bytes}]);
        let server = stage.serve(&[&stage.script("cut", &script)]);
        for dialect in DIALECTS {
            let expected = whole(&server, dialect).await;
            assert_eq!(expected, data.to_string());
            let response = ask(&server, dialect, &streamed(dialect, "counter")).await;
            assert_eq!(
                read(dialect, response).await.text(),
                expected,
                "{dialect} {bytes}"
            );
        }
    }
}

#[tokio::test]
async fn failure_after_sent_text_is_an_error() {
    let stage = Stage::new();
    let bad = reply(&json!({"rationale": "a longer text that is shown", "n": "x"}));
    let script = json!([{"reply": bad, "chunk_bytes": 7, "delay_ms": 10}]);
    let server = stage.serve(&[&stage.script("bad", &script)]);
    for dialect in DIALECTS {
        let (shown, error) = failed(&server, dialect, "counter").await;
        assert!(shown.starts_with(r#"{"rationale":"a longer text"#), "{shown}");
        assert!(error.contains("/data/n"), "{error}");
        // A non-streaming module sends nothing before its failure, so there is still a status.
        let response = ask(&server, dialect, &streamed(dialect, "waiter")).await;
        assert!(response.status().is_server_error(), "{dialect}");
        let body = body_of(response).await;
        assert_eq!(body["cogn"]["error"]["code"], "E3001", "{body}");
    }
}

/// A failing back-end is replaced; whether the stream can continue depends on the text of the second one.
#[tokio::test]
async fn restarted_answer_continues_or_ends_in_an_error() {
    let dying = json!({"reply": REPLY, "chunk_bytes": 7, "delay_ms": 5, "cut_after_bytes": 130});
    let other = reply(&json!({"rationale": "other words", "n": 1}));
    for dialect in DIALECTS {
        let stage = Stage::new();
        let server = pair(&stage, &dying, &json!({"reply": REPLY, "chunk_bytes": 11}), "");
        let response = ask(&server, dialect, &streamed(dialect, "counter")).await;
        assert_eq!(
            read(dialect, response).await.text(),
            data().to_string(),
            "{dialect}"
        );

        let stage = Stage::new();
        let server = pair(&stage, &dying, &json!({"reply": other}), "");
        let (shown, error) = failed(&server, dialect, "counter").await;
        assert!(
            data().to_string().starts_with(&shown) && !shown.is_empty(),
            "{shown}"
        );
        assert!(error.contains("restarted answer"), "{error}");
    }
}

/// If a gate may replace a good answer, nothing is sent before the gate has decided.
#[tokio::test]
async fn answer_that_gate_may_replace_is_not_streamed() {
    let unsure = REPLY.replace("0.9", "0.2");
    let sure = reply(&json!({"rationale": "sure words", "n": 1}));
    let gate = "[gate]\nmin_confidence = 0.8\nbackend = \"second\"\naction = \"rerun\"\n";
    for dialect in DIALECTS {
        let stage = Stage::new();
        let slow = json!({"reply": unsure, "chunk_bytes": 7, "delay_ms": 5});
        let server = pair(&stage, &slow, &json!({"reply": sure}), gate);
        let response = ask(&server, dialect, &streamed(dialect, "counter")).await;
        let text = read(dialect, response).await.text();
        assert_eq!(text, r#"{"rationale":"sure words","n":1}"#, "{dialect}");
    }
}
