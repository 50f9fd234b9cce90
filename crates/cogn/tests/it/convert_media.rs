//! `cogn convert` of media and messages: output, losses and errors.

use serde_json::{Value, json};

use crate::workspace::{Ran, Workspace};

const ID: &str = "018f6e5c-0000-7000-8000-00000000abcd";

fn convert(kind: &str, from: &str, to: &str, value: &Value, more: &[&str]) -> Ran {
    let workspace = Workspace::new();
    std::fs::write(workspace.path().join("in.json"), value.to_string()).expect("a file");
    let mut arguments = vec!["convert", "--kind", kind, "--from", from, "--to", to, "in.json"];
    arguments.extend(more);
    workspace.run(&arguments)
}

#[test]
fn media_converts_between_forms() {
    let part = json!({"type": "image_url", "image_url": {"url": format!("media:///{ID}"), "detail": "low", "rotation": 90},
        "video_metadata": {"video_id": "v", "timestamp_sec": 1.5, "frame_index": 36}});
    let forms = ["harmony-schema", "cognitive", "media-ref", "content-block"].map(|to| {
        let ran = convert("media", "harmony-schema", to, &part, &["--strict"]);
        assert_eq!(ran.code(), 0, "{}", ran.stderr());
        let back = convert("media", to, "harmony-schema", &ran.json(), &[]);
        assert_eq!(back.json()["image_url"], part["image_url"]);
        assert_eq!(back.json()["video_metadata"], part["video_metadata"]);
        json!({to: ran.json()})
    });
    insta::assert_snapshot!(serde_json::to_string_pretty(&forms).expect("JSON"));
}

/// Media converted for a module is accepted as input of a module.
#[test]
fn converted_media_passes_input_check() {
    let part = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo=", "detail": "low"}});
    let block = json!({"type": "image", "media_id": ID, "text_fallback": "t",
        "metadata": {"mime_type": "image/png", "dimensions": {"width": 3, "height": 4}}});
    for (from, value) in [("harmony-schema", part), ("content-block", block)] {
        let input = convert("media", from, "cognitive", &value, &[]).json();
        assert_eq!(module::media::check_input(&input), [], "{input}");
    }
}

#[test]
fn losses_are_listed_and_strict_refuses_them() {
    let part =
        json!({"type": "image_url", "image_url": {"url": "https://example.com/a.png", "shade": "warm"}});
    let ran = convert("media", "harmony-schema", "cognitive", &part, &[]);
    assert_eq!(ran.code(), 0);
    let losses: Value = serde_json::from_str(&ran.stderr()).expect("a list of losses");
    assert_eq!(losses[0]["pointer"], "/ext/harmony-schema/image_url");
    assert_eq!(losses[0]["action"], "dropped");
    assert_eq!(
        convert("media", "harmony-schema", "cognitive", &part, &["--strict"]).code(),
        1
    );
}

#[test]
fn conversion_that_needs_a_store_is_refused() {
    let input = json!({"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="});
    let ran = convert("media", "cognitive", "content-block", &input, &[]);
    assert_ne!(ran.code(), 0);
    assert!(ran.stderr().contains("must be stored first"), "{}", ran.stderr());
    let upload = json!({"type": "upload_ref", "upload_id": "upl_abc123", "media_type": "video/mp4"});
    assert_eq!(
        convert("media", "cognitive", "cognitive", &upload, &[]).json(),
        upload
    );
    let ran = convert("media", "cognitive", "media-ref", &upload, &[]);
    assert!(ran.stderr().contains("no alias is known"), "{}", ran.stderr());
}

#[test]
fn messages_convert_between_dialects() {
    let history = json!([
        {"role": "user", "content": [{"type": "text", "text": "look"},
            {"type": "image_url", "image_url": {"url": format!("media:///{ID}")}}]},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "{\"status\": \"error\"}"}
    ]);
    let forms = ["content-block", "media-ref"].map(|to| {
        let ran = convert("messages", "harmony-schema", to, &history, &["--strict"]);
        assert_eq!(ran.code(), 0, "{}", ran.stderr());
        assert_eq!(
            convert("messages", to, "harmony-schema", &ran.json(), &[]).json(),
            history
        );
        json!({to: ran.json()})
    });
    insta::assert_snapshot!(serde_json::to_string_pretty(&forms).expect("JSON"));
    let plain = json!([{"role": "user", "content": "hello"}]);
    assert_eq!(
        convert("messages", "harmony-schema", "openai-chat", &plain, &[]).json(),
        plain
    );
    assert_eq!(
        convert("messages", "anthropic", "harmony-schema", &plain, &[]).json(),
        plain
    );
}
