//! Recorded responses of a real llama.cpp server, in its dialects.

use std::fs;
use std::path::PathBuf;

use ir::Dialect;
use wire::chat;

use crate::fold::fold_bytes;

fn recorded(name: &str) -> Vec<u8> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/llama-server");
    fs::read(folder.join(name)).unwrap()
}

fn whole(dialect: Dialect, name: &str) -> ir::ChatResponse {
    chat::decode_response(dialect, serde_json::from_slice(&recorded(name)).unwrap()).unwrap()
}

#[test]
fn openai_chat() {
    let response = whole(Dialect::OpenaiChat, "chat.json");
    assert!(!response.text().is_empty());
    assert!(response.usage.unwrap().total_tokens().unwrap() > 0);
    assert_eq!(
        whole(Dialect::OpenaiChat, "chat-length.json").finish_reason,
        Some(ir::FinishReason::Length)
    );
    for name in [
        "chat-stream.sse",
        "chat-tools-stream.sse",
        "chat-schema-stream.sse",
    ] {
        let bytes = recorded(name);
        let folded = fold_bytes(Dialect::OpenaiChat, &bytes, bytes.len()).unwrap();
        assert_eq!(
            fold_bytes(Dialect::OpenaiChat, &bytes, 1).unwrap(),
            folded,
            "{name}"
        );
        assert!(
            !folded.text().is_empty() || folded.tool_calls().next().is_some(),
            "{name}"
        );
        assert!(folded.finish_reason.is_some(), "{name}");
    }
    let error = serde_json::from_slice(&recorded("chat-error.json")).unwrap();
    assert!(chat::decode_response(Dialect::OpenaiChat, error).is_err());
}

/// The same text, unary and streamed, in the two other dialects of the server.
#[test]
fn responses_and_messages() {
    for (dialect, stem) in [
        (Dialect::OpenaiResponses, "responses"),
        (Dialect::Anthropic, "messages"),
    ] {
        let response = whole(dialect, &format!("{stem}.json"));
        assert!(!response.text().is_empty(), "{stem}");
        let bytes = recorded(&format!("{stem}-stream.sse"));
        let folded = fold_bytes(dialect, &bytes, bytes.len()).unwrap();
        assert_eq!(fold_bytes(dialect, &bytes, 1).unwrap(), folded, "{stem}");
        assert!(!folded.text().is_empty(), "{stem}");
        assert!(folded.finish_reason.is_some(), "{stem}");
        assert!(
            folded.usage.is_some_and(|usage| usage.output_tokens.is_some()),
            "{stem}"
        );
    }
}
