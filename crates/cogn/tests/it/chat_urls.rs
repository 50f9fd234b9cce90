//! URLs in chats: a back-end is not made to fetch an address that cogn itself would refuse.

use ir::Dialect;
use serde_json::{Value, json};
use testkit::http::scripted;

use crate::harness::Stage;
use crate::openai_unary::back_end;

const METADATA: &str = "http://169.254.169.254/latest/meta-data/";

/// A chat with an image at this address, for every endpoint that accepts chats.
fn chats(url: &str) -> [(&'static str, Value); 7] {
    let image_url = json!([{"type": "image_url", "image_url": {"url": url}}]);
    let video_url = json!([{"type": "video_url", "video_url": {"url": url}}]);
    let block = json!([{"type": "image", "source": {"type": "url", "url": url}}]);
    let result = json!([{"type": "tool_result", "tool_use_id": "t", "content": block}]);
    let openai = |content: Value| json!({"model": "m", "messages": [{"role": "user", "content": content}]});
    let anthropic = |content: Value| {
        let mut body = openai(content);
        body["max_tokens"] = json!(9);
        body
    };
    [
        ("/v1/chat/completions", openai(image_url)),
        ("/v1/chat/completions", openai(video_url)),
        ("/v1/messages", anthropic(block.clone())),
        ("/v1/messages", anthropic(result)),
        ("/v1/messages/count_tokens", openai(block)),
        (
            "/v1/responses",
            json!({"model": "m", "input": [{"role": "user",
                "content": [{"type": "input_image", "image_url": url}]}]}),
        ),
        (
            "/v1/canonical",
            json!({"version": 1, "request_id": "r", "operation": "chat_completions",
                "payload": {"model": "m", "messages": [{"role": "user", "content_parts": [
                    {"type": "image", "image": {"kind": "http_url", "url": url, "mime": "image/png"}}]}]}}),
        ),
    ]
}

#[tokio::test]
async fn private_addresses_reach_no_backend() {
    for (settings, url) in [
        ("", METADATA),
        ("[media]\nfetch = \"off\"\n", "https://93.184.216.34/a.png"),
    ] {
        let upstream = scripted(Dialect::OpenaiChat, "- reply: hello\n");
        let stage = Stage::new();
        let features = "features = [\"supports_stream\", \"supports_image_input\", \"supports_video_input\"]";
        let config = back_end("vendor", &upstream.url(""), features) + settings;
        let server = stage.serve_with(&["--config", &stage.config(&config)], &[]);
        for (path, mut body) in chats(url) {
            for stream in [false, true] {
                if stream && path != "/v1/canonical" && !path.ends_with("count_tokens") {
                    body["stream"] = json!(true);
                }
                let sent = server.post(path).body(body.to_string()).send().await.unwrap();
                let status = sent.status().as_u16();
                let text = sent.text().await.unwrap();
                if path.ends_with("count_tokens") {
                    assert!(text.contains("\"estimated\":true"), "{text}");
                } else {
                    assert_eq!(status, 400, "{path}: {text}");
                    assert!(
                        text.contains("not allowed") || text.contains("disabled"),
                        "{text}"
                    );
                }
            }
        }
        assert_eq!(upstream.received().len(), 0, "{settings}");
    }
    // A public address is forwarded.
    let upstream = scripted(Dialect::OpenaiChat, "- reply: hello\n");
    let stage = Stage::new();
    let config = back_end(
        "vendor",
        &upstream.url(""),
        "features = [\"supports_image_input\"]",
    );
    let server = stage.serve_with(&["--config", &stage.config(&config)], &[]);
    let [(path, body), ..] = chats("https://93.184.216.34/a.png");
    let sent = server.post(path).body(body.to_string()).send().await.unwrap();
    assert_eq!(sent.status(), 200);
    assert_eq!(upstream.received().len(), 1);
}
