//! Test harness for the binary: a temporary folder with modules and scripts, and servers that are killed when
//! they are dropped.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use module::stream::{Assembled, assemble_ndjson};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) const REPLY: &str = r#"{"ok":true,"meta":{"confidence":0.9,"risk":"low","explain":"two words"},"data":{"rationale":"Größe und \"quotes\", 日本","n":3,"list":["a","b"],"deep":{"text":"end"}}}"#;

pub(crate) fn binary() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_cogn"))
}

/// Makes the `cogn.toml` of this folder the user's own file, which needs no trust. Returns the folder for
/// `XDG_CONFIG_HOME`.
pub(crate) fn user_configuration_in(folder: &Path) -> PathBuf {
    let configuration = folder.join(".config");
    if !configuration.join("cogn").is_symlink() {
        fs::create_dir_all(&configuration).unwrap();
        std::os::unix::fs::symlink(folder, configuration.join("cogn")).unwrap();
    }
    configuration
}

pub(crate) struct Stage {
    folder: TempDir,
}

impl Stage {
    /// Creates the modules `counter` (no side effects), `actor` (side effects), `ticker` (fast heartbeat) and
    /// `waiter` (never streams).
    pub(crate) fn new() -> Self {
        let stage = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        stage.module("counter", "deny", "both");
        stage.module("actor", "allow", "both");
        stage.module("ticker", "deny", "both, heartbeat_interval_ms: 20");
        stage.module("waiter", "deny", "sync");
        stage
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `mode` is the text after `mode:` in `response`.
    pub(crate) fn module(&self, name: &str, side_effects: &str, mode: &str) {
        let folder = self.path("modules").join(name);
        fs::create_dir_all(&folder).unwrap();
        let manifest = format!(
            "name: {name}\nversion: 1.0.0\nresponsibility: count words\ntier: decision\nexcludes: [guessing]\n\
             policies:\n  side_effects: {side_effects}\nresponse: {{buffer_size: 0, mode: {mode}}}\n"
        );
        let schema = json!({
            "input": {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}},
            "data": {
                "type": "object",
                "required": ["rationale", "n"],
                "properties": {"rationale": {"type": "string"}, "n": {"type": "integer"}}
            }
        });
        fs::write(folder.join("module.yaml"), manifest).unwrap();
        fs::write(folder.join("prompt.md"), "Count the words of: ${text}\n").unwrap();
        fs::write(folder.join("schema.json"), schema.to_string()).unwrap();
    }

    /// A script with these exchanges, in JSON, which is valid YAML.
    pub(crate) fn script(&self, name: &str, exchanges: &Value) -> String {
        let path = self.path(&format!("{name}.yaml"));
        fs::write(&path, serde_json::to_string_pretty(exchanges).unwrap()).unwrap();
        format!("scripted:{}", path.display())
    }

    /// A back-end that answers every request with [`REPLY`], in chunks.
    pub(crate) fn talker(&self, delay_ms: u64) -> String {
        let exchange = json!([{"reply": REPLY, "chunk_bytes": 7, "delay_ms": delay_ms}]);
        self.script(&format!("talker{delay_ms}"), &exchange)
    }

    pub(crate) fn cogn(&self) -> Command {
        let mut command = Command::new(binary());
        command.arg("--modules").arg(self.path("modules"));
        command.current_dir(self.folder.path());
        // Models installed on this machine are not used.
        command.env("COGN_MODELS_DIR", self.path("models"));
        command.env("XDG_CONFIG_HOME", user_configuration_in(self.folder.path()));
        command
    }

    /// Writes the user's configuration; servers of this stage read and watch it.
    pub(crate) fn configure(&self, text: &str) {
        fs::write(self.path("cogn.toml"), text).unwrap();
    }

    pub(crate) fn serve(&self, backends: &[&str]) -> Server {
        self.serve_with(&[], backends)
    }

    /// With additional flags; `--listen` among them replaces the default address.
    pub(crate) fn serve_with(&self, flags: &[&str], backends: &[&str]) -> Server {
        Server::spawn(self.serving(flags, backends))
    }

    /// The command that [`Stage::serve_with`] starts.
    pub(crate) fn serving(&self, flags: &[&str], backends: &[&str]) -> Command {
        Server::command(self, &self.path("journal.db"), flags, backends)
    }

    /// Writes a configuration file for `--config`.
    pub(crate) fn config(&self, text: &str) -> String {
        let path = self.path("server.toml");
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }
}

pub(crate) struct Server {
    child: Child,
    pub(crate) url: String,
}

impl Server {
    fn command(stage: &Stage, journal: &Path, flags: &[&str], backends: &[&str]) -> Command {
        let mut command = stage.cogn();
        command.args(["serve", "--quiet", "--journal"]);
        command.arg(journal);
        if !flags.contains(&"--listen") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        command.args(flags);
        for backend in backends {
            command.args(["--backend", backend]);
        }
        command
    }

    /// Starts a command that prints its listening address.
    pub(crate) fn spawn(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let url = line.trim().strip_prefix("listening on ").expect("an address");
        Self {
            url: String::from(url),
            child,
        }
    }

    /// `127.0.0.1:PORT`, for raw TCP clients.
    pub(crate) fn address(&self) -> &str {
        self.url.split_once("://").unwrap().1
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// `kill -9`; waits until the process has ended.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends SIGTERM and returns the exit code.
    pub(crate) fn terminate(mut self) -> Option<i32> {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status().unwrap();
        assert!(sent.success());
        self.child.wait().unwrap().code()
    }

    pub(crate) fn execute(&self, module: &str, body: &Value) -> reqwest::RequestBuilder {
        self.execute_raw(module).body(body.to_string())
    }

    pub(crate) fn execute_raw(&self, module: &str) -> reqwest::RequestBuilder {
        let url = format!("{}/v1/modules/{module}/execute", self.url);
        reqwest::Client::new().post(url)
    }

    pub(crate) fn post(&self, path: &str) -> reqwest::RequestBuilder {
        reqwest::Client::new().post(format!("{}{path}", self.url))
    }

    pub(crate) fn get(&self, path: &str) -> reqwest::RequestBuilder {
        reqwest::Client::new().get(format!("{}{path}", self.url))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Raises the soft limit of this process, for a test that opens as many connections as the server.
pub(crate) fn raise_open_files_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, raised).unwrap();
}

pub(crate) fn input() -> Value {
    json!({"text": "two words"})
}

/// The data of [`REPLY`].
pub(crate) fn data() -> Value {
    serde_json::from_str::<Value>(REPLY).unwrap()["data"].clone()
}

/// Assembles a stream, which must have no violations.
pub(crate) fn assemble(stream: &str) -> Assembled {
    let assembled = assemble_ndjson(stream.as_bytes());
    assert!(
        assembled.violations.is_empty(),
        "{:?}\n{stream}",
        assembled.violations
    );
    assert!(assembled.ended, "the stream has no end:\n{stream}");
    assembled
}

/// The numbered chunks of a stream in either framing, as they were sent.
pub(crate) fn chunks(stream: &str) -> Vec<&str> {
    let bodies = stream
        .lines()
        .map(|line| line.strip_prefix("data: ").unwrap_or(line));
    bodies.filter(|body| body.starts_with(r#"{"chunk""#)).collect()
}
