//! Changes to the body that is sent, through `POST /v1/canonical`: where the host allows them, at the back-end that
//! is meant, the structure apart; and said where they are left out.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};
use testkit::http::{ScriptedResponse, MockServer, scripted};

use crate::canonical::ask;
use crate::openai_unary::{ALL, back_end, vendor};
use crate::harness::{Stage, input};

const ALLOWED: &str = "[server]\nrequest_patches = true\n";
const SCRIPT: &str = "- reply: \"It is Paris.\"\n";

fn chat(patches: &Value) -> Value {
    json!({
        "operation": "chat_completions", "patches": patches,
        "payload": {"model": "m", "messages": [{"role": "user", "content": "What is it?"}], "generation": {"max_tokens": 9}}
    })
}

fn places(answer: &Value) -> Vec<&str> {
    let entries = answer["adaptations"].as_array().into_iter().flatten();
    entries.filter_map(|one| one["pointer"].as_str()).collect()
}

#[tokio::test]
async fn each_back_end_gets_the_changes_that_are_meant_for_it() {
    let stage = Stage::new();
    let kinds = [
        ("openai", ir::Dialect::OpenaiChat, "/v1", "/max_completion_tokens"),
        ("anthropic", ir::Dialect::Anthropic, "", "/max_tokens"),
        (
            "gemini",
            ir::Dialect::Gemini,
            "",
            "/generationConfig/maxOutputTokens",
        ),
        ("ollama", ir::Dialect::Ollama, "", "/options/num_predict"),
    ];
    let upstreams: Vec<MockServer> = kinds.iter().map(|kind| scripted(kind.1, SCRIPT)).collect();
    let mut config = String::from(ALLOWED);
    for ((kind, _, path, _), upstream) in kinds.iter().zip(&upstreams) {
        let url = upstream.url(path);
        config.push_str(&format!(
            "[[backends]]\nname = \"{kind}-1\"\nkind = \"{kind}\"\nbase_url = \"{url}\"\n"
        ));
    }
    let server = stage.serve_with(&["--config", &stage.config(&config)], &[]);
    for ((kind, _, _, limit), upstream) in kinds.iter().zip(&upstreams) {
        let patches = json!([
            {"match": {"backend": format!("{kind}-1")}, "pointer": "/seen_by", "value": kind},
            {"match": {"kind": kind, "model": "m"}, "pointer": limit, "delete": true},
            {"match": {"kind": "else"}, "pointer": "/not_seen", "value": 1},
            {"pointer": "/model", "value": "dear"},
            {"pointer": "/generationConfig/candidateCount", "value": 8},
        ]);
        let mut request = chat(&patches);
        request["routing"] = json!({"backend": format!("{kind}-1")});
        let (status, answer) = ask(&server, &request).await;
        assert_eq!(status, 200, "{kind}: {answer}");
        let call = upstream.received().pop().unwrap();
        let body = call.json();
        assert_eq!(body["seen_by"], *kind, "{body}");
        assert!(body.pointer(limit).is_none(), "{body}");
        assert!(body.get("not_seen").is_none(), "{body}");
        assert!(!call.text().contains("dear") && !call.text().contains("candidateCount"));
        let told = places(&answer);
        assert!(told.ends_with(&["/patches/3", "/patches/4"]), "{kind}: {answer}");
        let last = answer["adaptations"].as_array().and_then(|list| list.last());
        assert_eq!(last.unwrap()["action"], "dropped", "{kind}: {answer}");
        assert!(!told.contains(&"/patches"), "{answer}");

        request["degradation"] = json!("strict");
        let asked = upstream.received().len();
        let (status, answer) = ask(&server, &request).await;
        assert_eq!(status, 400, "{kind}: {answer}");
        let error = &answer["result"]["error"];
        assert_eq!(error["code"], "MissingCapabilities", "{answer}");
        assert!(
            error["message"].as_str().unwrap().contains("/patches/3"),
            "{answer}"
        );
        assert_eq!(upstream.received().len(), asked, "{kind}: nothing was sent");
    }
}

#[tokio::test]
async fn whoever_takes_over_is_not_touched() {
    let (stage, second) = (Stage::new(), vendor());
    let first = MockServer::with_responses(ScriptedResponse::response("500 Internal Server Error", &[], "{}"));
    let config = format!(
        "[routing]\npolicy = \"priority\"\n{ALLOWED}{}{}",
        back_end(
            "first",
            &first.url(""),
            &format!("operations = {ALL}\npriority = 10")
        ),
        back_end("second", &second.url(""), &format!("operations = {ALL}")),
    );
    let server = stage.serve_with(&["--config", &stage.config(&config)], &[]);
    let mut request = chat(&json!([
        {"match": {"backend": "first"}, "pointer": "/top_k", "value": 1},
        {"match": {"backend": "second"}, "pointer": "/top_p", "value": 1},
    ]));
    request["routing"] = json!({"preferred_backends": ["first"]});
    let (status, answer) = ask(&server, &request).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["backend"]["name"], "second", "{answer}");
    assert_eq!(first.received()[0].json()["top_k"], 1);
    assert!(first.received()[0].json().get("top_p").is_none());
    let body = second.received()[0].json();
    assert!(body.get("top_k").is_none() && body["top_p"] == 1, "{body}");
}

#[tokio::test]
async fn operations_in_one_piece_are_changed_too() {
    let (stage, upstream) = (Stage::new(), vendor());
    let config = back_end(
        "vendor",
        &upstream.url(""),
        &format!("operations = {ALL}\n{ALLOWED}"),
    );
    let server = stage.serve_with(&["--config", &stage.config(&config)], &[]);
    let data = ir::media::Base64::from_bytes(&crate::openai_unary::wav(1));
    let sound = json!({"kind": "inline_base64", "mime": "audio/wav", "data": data.as_str()});
    let patches = json!([{"pointer": "/own", "value": "yes"}, {"pointer": "/input", "value": "b"}]);
    for (operation, payload) in [
        ("embeddings", json!({"model": "m", "input": "a"})),
        ("image_generation", json!({"model": "m", "prompt": "a fox"})),
        ("text_to_speech", json!({"model": "m", "input": "a"})),
        ("speech_to_text", json!({"model": "m", "audio": sound})),
    ] {
        let request = json!({"operation": operation, "payload": payload, "patches": patches});
        let (status, answer) = ask(&server, &request).await;
        assert_eq!(status, 200, "{answer}");
        let call = upstream.received().pop().unwrap();
        match operation {
            "speech_to_text" => assert!(call.text().contains("name=\"own\"\r\n\r\nyes\r\n")),
            _ => assert_eq!(call.json()["own"], "yes"),
        }
        assert!(places(&answer).contains(&"/patches/1"), "{answer}");
        assert!(call.json().get("input").is_none_or(|input| input != "b"));
    }
}

#[tokio::test]
async fn without_the_hosts_word_they_are_left_out_and_it_is_said() {
    let (stage, upstream) = (Stage::new(), vendor());
    let config = back_end("vendor", &upstream.url(""), &format!("operations = {ALL}"));
    let server = stage.serve_with(&["--config", &stage.config(&config)], &[]);
    let request = chat(&json!([{"pointer": "/top_k", "value": 1}]));
    let (status, answer) = ask(&server, &request).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(places(&answer), ["/patches"]);
    assert!(upstream.received()[0].json().get("top_k").is_none());
    // What makes no sense is refused whether it would be listened to or not.
    for (patch, part) in [
        (json!({"pointer": "/a"}), "neither"),
        (json!({"pointer": "/a", "value": 1, "delete": true}), "both"),
        (json!({"pointer": "/a", "valeu": 1}), "valeu"),
    ] {
        let (status, answer) = ask(&server, &chat(&json!([patch]))).await;
        assert_eq!(status, 400, "{answer}");
        let message = answer["result"]["error"]["message"].as_str().unwrap();
        assert!(message.contains(part), "{message}");
    }
    let many = vec![json!({"pointer": "/a", "value": 1}); ir::limits::PATCHES_MAX + 1];
    let (status, answer) = ask(&server, &chat(&json!(many))).await;
    assert_eq!(status, 400, "{answer}");
    assert_eq!(upstream.received().len(), 1);
}

#[tokio::test]
async fn where_nothing_is_sent_and_in_a_module_it_is_said() {
    let stage = Stage::new();
    let script = stage.talker(0);
    let script = script.strip_prefix("scripted:").unwrap();
    let config = format!(
        "{ALLOWED}[[backends]]\nname = \"talker\"\nkind = \"scripted\"\nscript = {script:?}\noperations = [\"chat_completions\"]\n"
    );
    let server = stage.serve_with(&["--config", &stage.config(&config)], &[]);
    let mut request = chat(&json!([
        {"match": {"kind": "openai"}, "pointer": "/top_k", "value": 1},
        {"match": {"kind": "scripted", "model": "m"}, "pointer": "/top_k", "value": 1},
    ]));
    let (status, answer) = ask(&server, &request).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(places(&answer), ["/patches/1"]);
    request["degradation"] = json!("strict");
    let (status, answer) = ask(&server, &request).await;
    assert_eq!(status, 400, "{answer}");
    assert_eq!(
        answer["result"]["error"]["code"], "MissingCapabilities",
        "{answer}"
    );

    request["payload"]["model"] = json!("module:counter");
    request["payload"]["messages"][0]["content"] = json!(input().to_string());
    let (status, answer) = ask(&server, &request).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(places(&answer), ["/patches", "/degradation"], "{answer}");
}

/// A program is sent no body, and what it prints is no JSON of a server.
#[tokio::test]
async fn a_program_is_not_changed_and_it_is_said() {
    let stage = Stage::new();
    let (sound, program) = (stage.path("sound.wav"), stage.path("speaks"));
    fs::write(&sound, crate::openai_unary::wav(1)).unwrap();
    fs::write(&program, format!("#!/bin/sh\ncat {}\n", sound.display())).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let config = format!(
        "{ALLOWED}raw_answers = true\n[[backends]]\nname = \"mine\"\nkind = \"command\"\n\
         operations = [\"text_to_speech\"]\ncommand = {{ argv = [\"./speaks\"] }}\n"
    );
    let server = stage.serve_with(&["--config", &stage.config(&config)], &[]);
    let mut request = json!({
        "operation": "text_to_speech", "payload": {"input": "Hi"}, "extra": {"raw": true},
        "patches": [
            {"match": {"backend": "mine"}, "pointer": "/a", "value": 1},
            {"match": {"backend": "other"}, "pointer": "/a", "value": 1},
        ]
    });
    let (status, answer) = ask(&server, &request).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(places(&answer), ["/patches/0", "/extra/raw"], "{answer}");
    assert!(answer.get("raw").is_none());
    request["degradation"] = json!("strict");
    let (status, answer) = ask(&server, &request).await;
    assert_eq!(status, 400, "{answer}");
    let message = answer["result"]["error"]["message"].as_str().unwrap();
    assert!(message.contains("/patches/0"), "{message}");
}
