//! Unary operations of OpenAI's clients, with commands and the embedded encoder as back-ends.

use std::process::Command;

use super::node;
use super::packages::{folder, python, succeed};
use crate::harness::{Server, Stage};

const CONFIG: &str = r#"
[[backends]]
name = "voice"
kind = "command"
preset = "espeak-ng"

[[backends]]
name = "ear"
kind = "command"
preset = "pocketsphinx"

[[backends]]
name = "vectors"
kind = "local"
operations = ["embeddings"]
"#;

fn server(stage: &Stage) -> Server {
    testkit::speech::require_tts();
    let shelf = stage.path("shelf");
    let mut pull = stage.cogn();
    pull.args(["models", "pull", "--name", "all-minilm-l6-v2"])
        .arg(testkit::embedding_model::small_encoder())
        .env("COGN_MODELS_DIR", &shelf);
    succeed(&mut pull);
    let config = stage.config(CONFIG);
    let mut command = stage.serving(&["--config", &config], &[]);
    command
        .env("COGN_MODELS_DIR", &shelf)
        .env("PYTHONPATH", testkit::speech::require_asr());
    Server::spawn(command)
}

#[test]
fn openai_clients_use_embeddings_speech_and_transcription() {
    let stage = Stage::new();
    let server = server(&stage);
    let mut command = Command::new(python());
    command.arg(folder().join("openai_operations.py"));
    command
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("NO_PROXY", "127.0.0.1");
    let printed = succeed(command.env("OPEN_URL", &server.url));
    assert!(
        !printed.contains("Ran 0") && !printed.contains("skipped"),
        "{printed}"
    );

    let mut command = node::program(&stage.path(""), "openai_operations.mjs");
    node::passes(command.env("OPEN_URL", &server.url));
}
