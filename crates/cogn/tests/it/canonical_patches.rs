//! Request patches through `POST /v1/canonical`: applied only if the host allows them, only for the matching
//! back-end and never to structural fields; patches that are not applied are reported.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};
use testkit::http::{MockServer, ScriptedResponse, scripted};

use crate::canonical::ask;
use crate::harness::{Stage, input};
use crate::openai_unary::{ALL, back_end, vendor};

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
async fn patches_apply_only_to_matching_backend() {
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
        let reported = places(&answer);
        assert!(
            reported.ends_with(&["/patches/3", "/patches/4"]),
            "{kind}: {answer}"
        );
        let last = answer["adaptations"].as_array().and_then(|list| list.last());
        assert_eq!(last.unwrap()["action"], "dropped", "{kind}: {answer}");
        assert!(!reported.contains(&"/patches"), "{answer}");

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
async fn failover_backend_gets_only_its_own_patches() {
    let (stage, second) = (Stage::new(), vendor());
    let first =
        MockServer::with_responses(ScriptedResponse::response("500 Internal Server Error", &[], "{}"));
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
async fn unary_operations_are_patched() {
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
async fn patches_without_host_permission_are_dropped_and_reported() {
    let (stage, upstream) = (Stage::new(), vendor());
    let config = back_end("vendor", &upstream.url(""), &format!("operations = {ALL}"));
    let server = stage.serve_with(&["--config", &stage.config(&config)], &[]);
    let request = chat(&json!([{"pointer": "/top_k", "value": 1}]));
    let (status, answer) = ask(&server, &request).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(places(&answer), ["/patches"]);
    assert!(upstream.received()[0].json().get("top_k").is_none());
    // Invalid patches are refused whether patches are allowed or not.
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
async fn patches_without_request_body_or_for_module_are_reported() {
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

/// A command receives no request body, and its output is not a JSON response.
#[tokio::test]
async fn patches_for_command_are_reported() {
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
