//! Callers who leave, on every way to ask: how long the back-end is kept busy by nobody. Asked, left and
//! measured by the loadtest, whose upstream tells when it noticed.

use serde_json::Value;

use crate::harness::{Server, Stage};

/// Nothing for a minute: to be left before the first word.
const SLOW: &str = "mock-env-t100000-f60000000-i2000";
/// Words without end: to be left in the middle.
const STEADY: &str = "mock-env-t100000-i2000";
/// A module under a vendor's endpoint, where there is no coming back.
const MODULE: &str = "module:counter";
/// What is promised, and what a busy machine may take for once.
const PROMISED_US: u64 = 50_000;
const PATIENCE_US: u64 = 2_000_000;

/// Every way to ask, by the loadtest's name for it.
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
    /// A server before the loadtest's upstream, which speaks as `kind` does.
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
        let flags = ["--mode", "leave", "--endpoint", endpoint, "--url", &url];
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
        assert!(figure("p50") <= PROMISED_US, "{endpoint} {model}: {figures}");
        assert!(figure("max") <= PATIENCE_US, "{endpoint} {model}: {figures}");
    }
}

fn model(endpoint: &str) -> &'static str {
    match endpoint {
        // A tool has no model, but a name.
        "mcp" => "counter",
        _ if endpoint.ends_with("-stream") => STEADY,
        _ => SLOW,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_that_is_left_is_hung_up() {
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

/// The same where the back-end speaks the dialect of the last of them.
#[tokio::test(flavor = "multi_thread")]
async fn a_back_end_of_another_dialect_is_hung_up_too() {
    let scene = Scene::new("anthropic", "");
    for (endpoint, path) in WAYS.into_iter().take(12) {
        scene.leave_for_a_while(endpoint, path, model(endpoint)).await;
    }
    // Others are not asked how long a message is.
    let path = "/v1/messages/count_tokens";
    scene.leave_for_a_while("count-tokens", path, SLOW).await;
}

/// A stream that can be come back to is not given up before its time, nor much later.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_can_be_resumed_goes_on_for_its_grace() {
    let scene = Scene::new("openai", "[server]\nresume_grace_ms = 400");
    let path = "/v1/modules/counter/execute";
    let figures = scene
        .leave("module-kept", path, STEADY, &["--seconds", "2"])
        .await;
    let (p50, max) = (&figures["whole_us"]["p50"], &figures["whole_us"]["max"]);
    let (p50, max) = (p50.as_u64().unwrap(), max.as_u64().unwrap());
    // A tick of the clock may be lost on both sides.
    assert!((395_000..=400_000 + PROMISED_US).contains(&p50), "{figures}");
    assert!(max <= 400_000 + PATIENCE_US, "{figures}");
}
