//! `cogn convert`: documents and streams between dialects, with losses and exit codes.

use std::fs;

use serde_json::{Value, json};

use crate::workspace::Workspace;

fn with_file(text: &str) -> Workspace {
    let workspace = Workspace::new();
    fs::write(workspace.path().join("in"), text).expect("a file can be written");
    workspace
}

#[test]
fn losses_are_written_where_requested_and_strict_rejects_them() {
    let workspace = with_file(r#"{"model":"m","seed":7,"messages":[{"role":"user","content":"Hi"}]}"#);
    let plain = [
        "convert",
        "--from",
        "openai-chat",
        "--to",
        "anthropic",
        "in",
        "--losses",
        "losses.json",
    ];
    let ran = workspace.run(&plain);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    assert_eq!(ran.json()["messages"], json!([{"role": "user", "content": "Hi"}]));
    let losses = fs::read(workspace.path().join("losses.json")).expect("the losses are written");
    let losses: Value = serde_json::from_slice(&losses).expect("they are JSON");
    assert_eq!(losses[0]["pointer"], "/payload/generation/seed");
    assert_eq!(losses[0]["action"], "dropped");
    assert_eq!(workspace.run(&[&plain[..], &["--strict"]].concat()).code(), 1);
    let same = [
        "convert",
        "--from",
        "openai-chat",
        "--to",
        "openai-chat",
        "--strict",
        "in",
    ];
    assert_eq!(workspace.run(&same).code(), 0);
}

#[test]
fn stream_converts_to_stream_or_single_response() {
    let workspace = with_file(concat!(
        "data: {\"id\":\"c\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hel\"}}]}\n\n",
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"lo\"},\"finish_reason\":\"stop\"}]}\n\n",
        "data: [DONE]\n\n",
    ));
    let stream = [
        "convert",
        "--from",
        "openai-chat",
        "--to",
        "anthropic",
        "--kind",
        "stream",
        "in",
    ];
    let text = workspace.run(&stream).stdout();
    assert!(text.starts_with("event: message_start\n"), "{text}");
    assert!(
        text.ends_with("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"),
        "{text}"
    );
    let folded = workspace.run(&[&stream[..], &["--fold"]].concat()).json();
    assert_eq!(folded["content"], json!([{"type": "text", "text": "Hello"}]));
    assert_eq!(folded["stop_reason"], "end_turn");
}

#[test]
fn truncated_stream_and_error_exit_with_1() {
    let workspace =
        with_file("data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hel\"}}]}\n\n");
    let ran = workspace.run(&[
        "convert",
        "--from",
        "openai-chat",
        "--to",
        "anthropic",
        "--kind",
        "stream",
        "in",
    ]);
    assert_eq!(ran.code(), 1);
    assert!(ran.stdout().contains("\"type\":\"error\""), "{}", ran.stdout());
    assert!(!ran.stdout().contains("message_stop"), "{}", ran.stdout());
    let workspace = with_file(r#"{"error":{"message":"slow down","type":"rate_limit_error"}}"#);
    let ran = workspace.run(&[
        "convert",
        "--from",
        "openai-chat",
        "--to",
        "gemini",
        "--kind",
        "response",
        "in",
    ]);
    assert_eq!(ran.code(), 1);
    assert_eq!(ran.json()["error"]["status"], "RESOURCE_EXHAUSTED");
}

#[test]
fn unreadable_input_exits_with_2() {
    let workspace = with_file("not json");
    for (from, to) in [("openai-chat", "anthropic"), ("openai-chat", "esperanto")] {
        assert_eq!(
            workspace
                .run(&["convert", "--from", from, "--to", to, "in"])
                .code(),
            2
        );
    }
}

#[test]
fn media_and_messages_are_converted() {
    let workspace = with_file(r#"{"type":"url","url":"https://example.com/a.png","media_type":"image/png"}"#);
    let ran = workspace.run(&[
        "convert",
        "--from",
        "cognitive",
        "--to",
        "media-ref",
        "--kind",
        "media",
        "in",
    ]);
    assert_eq!(
        ran.json(),
        json!({"kind": "http_url", "url": "https://example.com/a.png", "mime": "image/png"})
    );
    let ran = workspace.run(&[
        "convert",
        "--from",
        "cognitive",
        "--to",
        "content-block",
        "--kind",
        "media",
        "in",
    ]);
    assert_eq!(ran.code(), 2);
    let workspace = with_file(r#"[{"role":"system","content":"S"},{"role":"user","content":"Hi"}]"#);
    let ran = workspace.run(&[
        "convert",
        "--from",
        "openai-chat",
        "--to",
        "gemini",
        "--kind",
        "messages",
        "in",
    ]);
    assert_eq!(
        ran.json()["contents"],
        json!([{"role": "user", "parts": [{"text": "Hi"}]}])
    );
}
