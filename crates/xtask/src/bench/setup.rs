//! Setup of the server benchmarks: an upstream, a server with a module and a journal, and a load generator,
//! each pinned to a core.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tempfile::TempDir;

use super::row::Row;
use crate::shell::{build, capture, run};

/// The key that every request of a vendor's client has.
pub(super) const KEY: &str = "sk-loadtest";

pub(super) fn measured<T>(cogn: &Path, what: impl Fn(&Bench<'_>) -> Result<T>) -> Result<T> {
    let loadtest = build("loadtest", &[], "release")?;
    let upstream = ServerProcess::start(&loadtest, "0", &["upstream"], None)?;
    what(&Bench {
        cogn,
        loadtest: &loadtest,
        upstream: &upstream,
    })
}

pub(super) struct Bench<'b> {
    pub(super) cogn: &'b Path,
    pub(super) loadtest: &'b Path,
    pub(super) upstream: &'b ServerProcess,
}

impl Bench<'_> {
    pub(super) fn load(&self, server: &ServerProcess, path: &str, more: &[&str]) -> Result<Value> {
        let url = format!("http://{}{path}", server.address());
        let pid = server.pid().to_string();
        let mut command = pinned("0", self.loadtest);
        command.args(["load", "--url", &url, "--pid", &pid]).args(more);
        let line = capture(&mut command)?;
        let figures: Value = serde_json::from_str(&line).context("the load printed no JSON")?;
        if figures["bad"] != 0 || figures["good"] == 0 {
            bail!("some requests failed: {figures}");
        }
        Ok(figures)
    }
}

/// A figure with a fixed limit instead of a baseline.
pub(super) fn bound(name: &str, measured: f64, unit: &'static str, bound: f64) -> Row {
    Row {
        name: String::from(name),
        measured,
        baseline: bound,
        unit,
        against: String::from("its bound"),
        limit: 1.0,
    }
}

pub(super) fn number(figures: &Value, pointer: &str) -> Result<f64> {
    figures
        .pointer(pointer)
        .and_then(Value::as_f64)
        .with_context(|| format!("no figure at {pointer} in {figures}"))
}

pub(super) fn resident_kb(pid: u32) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find(|line| line.starts_with("VmRSS"));
    line.and_then(|line| line.split_whitespace().nth(1))
        .and_then(|kb| kb.parse().ok())
        .context("the kernel reports no memory")
}

fn pinned(core: &str, program: &Path) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", core]).arg(program);
    command
}

/// A process that prints its listening address, and is killed on drop.
pub(super) struct ServerProcess {
    child: Child,
    address: String,
}

impl ServerProcess {
    pub(super) fn start(
        program: &Path,
        core: &str,
        arguments: &[&str],
        folder: Option<&Path>,
    ) -> Result<Self> {
        let mut command = pinned(core, program);
        command
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        if let Some(folder) = folder {
            command.current_dir(folder);
        }
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot start {command:?}"))?;
        let mut stdout = BufReader::new(child.stdout.take().context("no output")?);
        let mut line = String::new();
        stdout.read_line(&mut line)?;
        let address = line.trim().rsplit([' ', '/']).next().unwrap_or_default();
        let address = String::from(address);
        if !address.contains(':') {
            bail!("{command:?} did not print its address: {line}");
        }
        // Drains further output, so that the pipe never fills up.
        std::thread::spawn(move || stdout.read_to_end(&mut Vec::new()));
        Ok(Self { child, address })
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends SIGTERM and waits for the exit.
    pub(super) fn stop(mut self) -> Result<()> {
        let pid = self.pid().to_string();
        run(Command::new("kill").args(["-TERM", &pid]))?;
        let status = self.child.wait()?;
        if !status.success() {
            bail!("the server exited with {status} after SIGTERM");
        }
        Ok(())
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A module, a configuration and a journal.
pub(super) struct Folder {
    folder: TempDir,
}

impl Folder {
    /// With one back-end for OpenAI's dialect, with one model.
    pub(super) fn new(upstream: &str, model: &str) -> Result<Self> {
        Self::with(&format!(
            "[[backends]]\nname = \"upstream\"\nkind = \"openai\"\nbase_url = \"http://{upstream}/v1\"\nmodel = \"{model}\"\n"
        ))
    }

    pub(super) fn with(configuration: &str) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let module: PathBuf = folder.path().join("cognitive/modules/measured");
        fs::create_dir_all(&module)?;
        fs::write(module.join("module.yaml"), MANIFEST)?;
        fs::write(module.join("schema.json"), SCHEMA)?;
        fs::write(module.join("prompt.md"), "Review the code.\n\n$INPUT\n")?;
        fs::write(folder.path().join("cogn.toml"), configuration)?;
        Ok(Self { folder })
    }

    pub(super) fn serve(&self, cogn: &Path) -> Result<ServerProcess> {
        let journal = self.folder.path().join("journal.db");
        let journal = journal.to_str().context("the path is not UTF-8")?;
        let arguments = [
            "serve",
            "--config",
            "cogn.toml",
            "--listen",
            "127.0.0.1:0",
            "--journal",
            journal,
        ];
        ServerProcess::start(cogn, "1", &arguments, Some(self.folder.path()))
    }
}

const MANIFEST: &str = "name: measured
version: 1.0.0
responsibility: Answers at once, to be measured
tier: decision
excludes: [anything else]
policies:
  network: deny
  filesystem_write: deny
  side_effects: deny
  code_execution: deny
response:
  mode: both
  chunk_type: delta
";

const SCHEMA: &str = r#"{
  "$schema": "http://json-schema.org/draft-07/schema#",
  "meta": {
    "type": "object",
    "required": ["confidence", "risk", "explain"],
    "properties": {
      "confidence": {"type": "number", "minimum": 0, "maximum": 1},
      "risk": {"type": "string", "enum": ["none", "low", "medium", "high"]},
      "explain": {"type": "string", "maxLength": 280}
    }
  },
  "input": {"type": "object", "required": ["code"], "properties": {"code": {"type": "string"}}},
  "data": {
    "type": "object",
    "required": ["result", "rationale"],
    "properties": {"result": {"type": "string"}, "rationale": {"type": "string"}}
  }
}
"#;
