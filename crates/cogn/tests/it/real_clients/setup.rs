//! Servers for the clients: one without keys in front of a real model server, the embedded model and two
//! scripts, and one with keys in front of the embedded model only.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use ir::Dialect;
use serde_json::{Value, json};
use testkit::http::{MockServer, scripted};
use testkit::llama_server::Llama;

use crate::examples::root;
use crate::harness::{REPLY, Server, Stage};
use crate::keys::key;

pub(super) struct Scene {
    stage: Stage,
    open: Server,
    closed: Server,
    key: String,
    slow_key: String,
    /// The servers run until they are dropped.
    _scripts: [MockServer; 2],
}

impl Scene {
    pub(super) fn new() -> Self {
        let stage = Stage::new();
        copy_module(&stage, "text-classifier");
        let scripts = [
            scripted(Dialect::OpenaiChat, &script()),
            scripted(Dialect::Anthropic, &script()),
        ];
        let (key, slow_key) = (key(&stage, &[]), key(&stage, &["--rate", "1/h"]));
        let embedded = embedded(&stage);
        let closed = stage.config(&embedded);
        let closed = stage.serve_with(&["--require-auth", "--config", &closed], &[]);
        let open = stage.path("open.toml");
        fs::write(&open, format!("{}{embedded}", fleet(&scripts))).unwrap();
        let open_journal = stage.path("open.db");
        let open = Server::spawn(serve(&stage, &open, &open_journal));
        Self {
            stage,
            open,
            closed,
            key,
            slow_key,
            _scripts: scripts,
        }
    }

    /// The temporary folder of the stage.
    pub(super) fn folder(&self) -> std::path::PathBuf {
        self.stage.path("")
    }

    /// Sets the variables that describe the servers, and removes those that would direct a client elsewhere.
    pub(super) fn describe<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        for vendor in ["OPENAI", "ANTHROPIC"] {
            for word in ["API_KEY", "BASE_URL", "AUTH_TOKEN", "ORG_ID", "PROJECT_ID"] {
                command.env_remove(format!("{vendor}_{word}"));
            }
        }
        command
            .env("OPEN_URL", &self.open.url)
            .env("CLOSED_URL", &self.closed.url)
            .env("CLOSED_KEY", &self.key)
            .env("SLOW_KEY", &self.slow_key)
            .env("LLAMA_URL", Llama::shared().url(""))
            .env("NO_PROXY", "127.0.0.1")
            .env("LANGSMITH_TRACING", "false")
            .env("PYTHONDONTWRITEBYTECODE", "1")
    }
}

fn serve(stage: &Stage, config: &Path, journal: &Path) -> Command {
    let mut command = stage.cogn();
    command.args(["serve", "--quiet", "--listen", "127.0.0.1:0", "--journal"]);
    command.arg(journal).arg("--config").arg(config);
    command
}

/// The model name is the name of the weights file.
fn embedded(stage: &Stage) -> String {
    let weights = stage.path("embedded.gguf");
    symlink(testkit::language_model::small_model(), &weights).unwrap();
    let weights = weights.display();
    format!("[[backends]]\nname = \"embedded\"\nkind = \"local\"\nmodel = \"{weights}\"\n")
}

fn fleet(scripts: &[MockServer; 2]) -> String {
    let llama = Llama::shared();
    let [openai, anthropic] = scripts;
    let able = r#"features = ["supports_stream", "supports_tools", "supports_json_schema"]"#;
    // Failures are intended here, so no back-end may be skipped because of them. Modules use the first
    // script. A back-end that answers 429 is paused, so the test of rate limits calls separate `-busy`
    // back-ends.
    format!(
        r#"[routing]
policy = "priority"
retry = {{ same_backend_max = 0 }}
breaker = {{ failures = 1000, failure_ratio = 1.0 }}

[[backends]]
name = "llama"
kind = "openai"
base_url = "{0}"
model = "smollm2"

[[backends]]
name = "llama-messages"
kind = "anthropic"
base_url = "{1}"
model = "llama-messages"

[[backends]]
name = "scripted-openai"
kind = "openai"
base_url = "{2}"
model = "scripted-openai"
priority = 10
{able}

[[backends]]
name = "scripted-anthropic"
kind = "anthropic"
base_url = "{3}"
model = "scripted-anthropic"
{able}

[[backends]]
name = "scripted-openai-busy"
kind = "openai"
base_url = "{2}"
model = "scripted-openai-busy"

[[backends]]
name = "scripted-anthropic-busy"
kind = "anthropic"
base_url = "{3}"
model = "scripted-anthropic-busy"

[aliases]
llama = {{ model = "smollm2", backend = "llama" }}

"#,
        llama.url("/v1"),
        llama.url(""),
        openai.url("/v1"),
        anthropic.url(""),
    )
}

/// Replies that follow the instructions exactly.
fn script() -> String {
    let call = json!([
        {"type": "started", "id": "x", "model": "m"},
        {"type": "block_start", "index": 0, "block": {"kind": "tool_call", "id": "call_1", "name": "weather"}},
        {"type": "block_delta", "index": 0, "delta": {"kind": "tool_arguments", "json": "{\"city\":"}},
        {"type": "block_delta", "index": 0, "delta": {"kind": "tool_arguments", "json": "\"Bern\"}"}},
        {"type": "block_end", "index": 0},
        {"type": "usage", "usage": {"input_tokens": 11, "output_tokens": 7}},
        {"type": "finish", "reason": "tool_calls"}
    ]);
    let counted: Value = serde_json::from_str(REPLY).unwrap();
    let exchanges = json!([
        {"match": "22 degrees", "reply": "It is 22 degrees in Bern.", "chunk_bytes": 4},
        {"match": "weather in Bern", "events": call},
        {"match": "die in the middle", "reply": "It was a dark night", "chunk_bytes": 4, "cut_after_bytes": 12},
        {"match": "one too many", "status": 429, "headers": {"retry-after": "7"}},
        {"match": "Count the words of: badly", "reply": {"ok": true, "meta": counted["meta"], "data": {"n": "x"}}},
        {"match": "Count the words", "reply": counted},
        {"reply": "Hello, Größe", "chunk_bytes": 3}
    ]);
    exchanges.to_string()
}

fn copy_module(stage: &Stage, name: &str) {
    let (from, to) = (
        root().join("examples/modules").join(name),
        stage.path("modules").join(name),
    );
    fs::create_dir_all(&to).unwrap();
    for file in fs::read_dir(from).unwrap().map(Result::unwrap) {
        if file.file_type().unwrap().is_file() {
            fs::copy(file.path(), to.join(file.file_name())).unwrap();
        }
    }
}
