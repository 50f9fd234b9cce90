//! Cancellation latency after a client disconnect, for every endpoint: how long the back-end connection stays
//! open. The `loadtest` crate sends, disconnects and measures; its upstream reports when it detected the
//! disconnect.

use serde_json::Value;

use crate::harness::{Server, Stage};

/// No output for a minute: for a disconnect before the first token.
const SLOW: &str = "mock-env-t100000-f60000000-i2000";
/// Endless output: for a disconnect in the middle of the response.
const STEADY: &str = "mock-env-t100000-i2000";
/// A module on a vendor's endpoint, where a stream cannot be resumed.
const MODULE: &str = "module:counter";
/// The limit of the median, and of every single measurement: on a busy machine one may wait for a core.
const MEDIAN_MAX_US: u64 = 50_000;
const SINGLE_MAX_US: u64 = 2_000_000;

/// Every endpoint, by its name in `loadtest`.
const WAYS: [(&str, &str); 17] = [
    ("chat", "/v1/chat/completions"),
    ("chat-stream", "/v1/chat/completions"),
    ("chat-early", "/v1/chat/completions"),
    ("responses", "/v1/responses"),
    ("responses-stream", "/v1/responses"),
    ("messages", "/v1/messages"),
    ("messages-stream", "/v1/messages"),
    ("canonical", "/v1/canonical"),
    ("canonical-stream", "/v1/canonical"),
    ("module", "/v1/modules/counter/execute"),
    ("module-stream", "/v1/modules/counter/execute"),
    ("mcp", "/mcp"),
    ("embeddings", "/v1/embeddings"),
    ("images", "/v1/images/generations"),
    ("transcriptions", "/v1/audio/transcriptions"),
    ("speech", "/v1/audio/speech"),
    ("canonical-embeddings", "/v1/canonical"),
];

struct Scene {
    upstream: String,
    server: Server,
    _stage: Stage,
}

impl Scene {
    /// A server in front of the `loadtest` upstream, which uses the dialect of `kind`.
    fn new(kind: &str, more: &str) -> Self {
        let upstream = loadtest::upstream().unwrap().to_string();
        let (before, operations) = match kind {
            "openai" => (
                "/v1",
                r#"operations = ["chat_completions", "embeddings", "image_generation", "speech_to_text", "text_to_speech"]"#,
            ),
            _ => ("", ""),
        };
        let stage = Stage::new();
        let config = stage.config(&format!(
            "[[backends]]\nname = \"b\"\nkind = \"{kind}\"\nbase_url = \"http://{upstream}{before}\"\n\
             default_model = \"{STEADY}\"\n{operations}\n{more}\n"
        ));
        let server = stage.serve_with(&["--config", &config], &[]);
        Self {
            upstream,
            server,
            _stage: stage,
        }
    }

    async fn leave(&self, endpoint: &str, path: &str, model: &str, more: &[&str]) -> Value {
        let url = format!("{}{path}", self.server.url);
        let flags = ["--mode", "disconnect", "--endpoint", endpoint, "--url", &url];
        let whom = ["--upstream", &self.upstream, "--model", model, "--warm", "0"];
        let flags = [flags.as_slice(), &whom, more].concat();
        let figures = loadtest::figures(flags).await.unwrap();
        assert_eq!(figures["bad"], 0, "{endpoint}: {figures}");
        assert!(figures["good"].as_u64() > Some(0), "{endpoint}: {figures}");
        figures
    }

    async fn leave_for_a_while(&self, endpoint: &str, path: &str, model: &str) {
        let figures = self.leave(endpoint, path, model, &["--seconds", "0.3"]).await;
        let figure = |name: &str| figures["whole_us"][name].as_u64().unwrap();
        assert!(figure("p50") <= MEDIAN_MAX_US, "{endpoint} {model}: {figures}");
        assert!(figure("max") <= SINGLE_MAX_US, "{endpoint} {model}: {figures}");
    }
}

fn model(endpoint: &str) -> &'static str {
    match endpoint {
        // A tool call has no model; the tool name is used.
        "mcp" => "counter",
        _ if endpoint.ends_with("-stream") => STEADY,
        _ => SLOW,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn disconnect_cancels_upstream_call_on_every_endpoint() {
    let scene = Scene::new("openai", "");
    for (endpoint, path) in WAYS {
        scene.leave_for_a_while(endpoint, path, model(endpoint)).await;
    }
    for endpoint in ["chat", "chat-stream"] {
        scene
            .leave_for_a_while(endpoint, "/v1/chat/completions", MODULE)
            .await;
    }
}

/// The same with a back-end of kind `anthropic`.
#[tokio::test(flavor = "multi_thread")]
async fn disconnect_cancels_upstream_call_of_anthropic_backend() {
    let scene = Scene::new("anthropic", "");
    for (endpoint, path) in WAYS.into_iter().take(12) {
        scene.leave_for_a_while(endpoint, path, model(endpoint)).await;
    }
    // Only back-ends of this kind are called for a token count.
    let path = "/v1/messages/count_tokens";
    scene.leave_for_a_while("count-tokens", path, SLOW).await;
}

/// A resumable stream is not cancelled before its grace period, nor much later.
#[tokio::test(flavor = "multi_thread")]
async fn resumable_stream_continues_for_its_grace_period() {
    let scene = Scene::new("openai", "[server]\nresume_grace_ms = 400");
    let path = "/v1/modules/counter/execute";
    let figures = scene
        .leave("module-resumable", path, STEADY, &["--seconds", "2"])
        .await;
    let (p50, max) = (&figures["whole_us"]["p50"], &figures["whole_us"]["max"]);
    let (p50, max) = (p50.as_u64().unwrap(), max.as_u64().unwrap());
    // Both sides may lose one clock tick.
    assert!((395_000..=400_000 + MEDIAN_MAX_US).contains(&p50), "{figures}");
    assert!(max <= 400_000 + SINGLE_MAX_US, "{figures}");
}
