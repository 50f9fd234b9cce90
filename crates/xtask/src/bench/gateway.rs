//! The server under load: the upstream and the load on one core, whoever stands between them alone on another.
//! The same questions go straight to the upstream, through the floor and through cogn, in one run.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tempfile::TempDir;

use super::row::Row;
use crate::shell::{build, capture};

/// 64 tokens, in the form of an envelope of the measured module.
const MODEL: &str = "mock-env-t64";
/// Tokens that take long enough for every stream to be open at once.
const SLOW_MODEL: &str = "mock-env-t64-i150000";
/// What a vendor's client always brings, whoever it talks to.
const KEY: &str = "sk-yardstick";
/// Tokens without end, so often that an upstream notices at once that nobody reads them.
const STEADY_MODEL: &str = "mock-t100000-i2000";
const CHAT: &str = "/v1/chat/completions";
const EXECUTE: &str = "/v1/modules/measured/execute";

/// Modules over HTTP.
pub(crate) fn modules(cogn: &Path) -> Result<Vec<Row>> {
    measured(cogn, |bench| {
        let mut rows = bench.modules()?;
        for count in [1_000, 8_000] {
            rows.push(bench.memory("module", EXECUTE, "execute", count)?);
        }
        Ok(rows)
    })
}

/// Vendors' clients.
pub(crate) fn edges(cogn: &Path) -> Result<Vec<Row>> {
    measured(cogn, |bench| {
        let mut rows = bench.chat()?;
        for count in [1_000, 8_000] {
            rows.push(bench.memory("chat", CHAT, "stream", count)?);
        }
        Ok(rows)
    })
}

fn measured(cogn: &Path, what: impl Fn(&Bench<'_>) -> Result<Vec<Row>>) -> Result<Vec<Row>> {
    let yardstick = build("yardstick", &[], "release")?;
    let upstream = Server::start(&yardstick, "0", &["upstream"], None)?;
    what(&Bench {
        cogn,
        yardstick: &yardstick,
        upstream: &upstream,
    })
}

struct Bench<'b> {
    cogn: &'b Path,
    yardstick: &'b Path,
    upstream: &'b Server,
}

impl Bench<'_> {
    fn modules(&self) -> Result<Vec<Row>> {
        let stream = ["--mode", "stream", "--model", MODEL, "--key", KEY];
        let direct = self.load(self.upstream, CHAT, &stream)?;
        let floor = self.load(&self.floor()?, CHAT, &stream)?;

        let folder = Folder::new(self.upstream.address(), MODEL)?;
        let server = folder.serve(self.cogn)?;
        let idle_kb = resident_kb(server.child.id())?;
        let one = self.load(&server, EXECUTE, &["--mode", "execute"])?;
        let many = self.load(&server, EXECUTE, &["--mode", "execute", "--connections", "32"])?;
        let whole = self.load(&server, EXECUTE, &["--mode", "call", "--connections", "32"])?;
        let resumed = self.load(&server, EXECUTE, &["--mode", "resume"])?;
        Ok(vec![
            bound(
                "module, whole: CPU of one call",
                number(&whole, "/cpu_us_per_request")?,
                "us",
                80.0,
            ),
            bound(
                "module stream: CPU of one token",
                number(&many, "/cpu_us_per_token")?,
                "us",
                12.0,
            ),
            bound(
                "module stream: first token, above the floor's",
                first_us(&one)? - first_us(&floor)?,
                "us",
                200.0,
            ),
            bound(
                "module stream: first token, above direct",
                first_us(&one)? - first_us(&direct)?,
                "us",
                500.0,
            ),
            // A second stream of the same length, read to its end, is what coming back may cost.
            Row {
                name: String::from("module stream: the second half again, after it was left"),
                measured: number(&resumed, "/whole_us/p50")?,
                baseline: number(&one, "/whole_us/p50")?,
                unit: "us",
                against: String::from("the whole of it, live"),
                limit: 1.0,
            },
            bound("memory at rest", idle_kb / 1024.0, "MiB", 30.0),
        ])
    }

    /// What a vendor's client sees: the same questions, the same answers, one more process on the way.
    fn chat(&self) -> Result<Vec<Row>> {
        let whole = ["--mode", "chat", "--model", MODEL, "--key", KEY];
        let stream = ["--mode", "stream", "--model", MODEL, "--key", KEY];
        let many = ["--connections", "32"];
        let direct = self.load(self.upstream, CHAT, &whole)?;
        let floor = self.load(&self.floor()?, CHAT, &stream)?;
        let folder = Folder::new(self.upstream.address(), MODEL)?;
        let server = folder.serve(self.cogn)?;
        let one = self.load(&server, CHAT, &whole)?;
        let one_stream = self.load(&server, CHAT, &stream)?;
        let busy = self.load(&server, CHAT, &[&whole[..], &many].concat())?;
        let busy_streams = self.load(&server, CHAT, &[&stream[..], &many].concat())?;
        let added = |at: &str| Ok::<_, anyhow::Error>(number(&one, at)? - number(&direct, at)?);
        Ok(vec![
            bound(
                "chat: CPU of one call",
                number(&busy, "/cpu_us_per_request")?,
                "us",
                80.0,
            ),
            bound("chat: added to direct, p50", added("/whole_us/p50")?, "us", 200.0),
            bound("chat: added to direct, p99", added("/whole_us/p99")?, "us", 400.0),
            bound(
                "chat stream: CPU of one token",
                number(&busy_streams, "/cpu_us_per_token")?,
                "us",
                12.0,
            ),
            bound(
                "chat stream: first token, above the floor's",
                first_us(&one_stream)? - first_us(&floor)?,
                "us",
                200.0,
            ),
            bound(
                "chat stream: the upstream goes on after its reader left",
                self.left()?,
                "us",
                50_000.0,
            ),
        ])
    }

    /// How long the upstream is kept busy by nobody.
    fn left(&self) -> Result<f64> {
        let folder = Folder::new(self.upstream.address(), STEADY_MODEL)?;
        let server = folder.serve(self.cogn)?;
        let upstream = self.upstream.address();
        let leave = ["--mode", "leave", "--model", STEADY_MODEL, "--upstream", upstream];
        number(&self.load(&server, CHAT, &leave)?, "/whole_us/max")
    }

    fn floor(&self) -> Result<Server> {
        let arguments = ["floor", "--upstream", self.upstream.address()];
        Server::start(self.yardstick, "1", &arguments, None)
    }

    /// What an open stream holds, when so many are open at once.
    fn memory(&self, what: &str, path: &str, mode: &str, count: u32) -> Result<Row> {
        let folder = Folder::new(self.upstream.address(), SLOW_MODEL)?;
        let server = folder.serve(self.cogn)?;
        let before_kb = resident_kb(server.child.id())?;
        let connections = count.to_string();
        let once = ["--mode", mode, "--model", SLOW_MODEL, "--once", "--warm", "0"];
        let all = ["--seconds", "9", "--connections", &connections];
        let open = self.load(&server, path, &[&once[..], &all].concat())?;
        let peak_kb = number(&open, "/rss_kb/peak")?;
        Ok(bound(
            &format!("{what}: memory of one of {count} open streams"),
            (peak_kb - before_kb) / f64::from(count),
            "KiB",
            32.0,
        ))
    }

    fn load(&self, server: &Server, path: &str, more: &[&str]) -> Result<Value> {
        let url = format!("http://{}{path}", server.address());
        let pid = server.child.id().to_string();
        let mut command = pinned("0", self.yardstick);
        command.args(["load", "--url", &url, "--pid", &pid]).args(more);
        let line = capture(&mut command)?;
        let figures: Value = serde_json::from_str(&line).context("the load printed no JSON")?;
        if figures["bad"] != 0 || figures["good"] == 0 {
            bail!("not every answer was good: {figures}");
        }
        Ok(figures)
    }
}

fn first_us(figures: &Value) -> Result<f64> {
    number(figures, "/first_us/p50")
}

/// A figure that has a bound of its own instead of a baseline.
fn bound(name: &str, measured: f64, unit: &'static str, bound: f64) -> Row {
    Row {
        name: String::from(name),
        measured,
        baseline: bound,
        unit,
        against: String::from("its bound"),
        limit: 1.0,
    }
}

fn number(figures: &Value, pointer: &str) -> Result<f64> {
    figures
        .pointer(pointer)
        .and_then(Value::as_f64)
        .with_context(|| format!("no figure at {pointer} in {figures}"))
}

fn resident_kb(pid: u32) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find(|line| line.starts_with("VmRSS"));
    line.and_then(|line| line.split_whitespace().nth(1))
        .and_then(|kb| kb.parse().ok())
        .context("the kernel tells no memory")
}

fn pinned(core: &str, program: &Path) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", core]).arg(program);
    command
}

/// A process that says where it listens, and is killed when it is no longer needed.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(program: &Path, core: &str, arguments: &[&str], folder: Option<&Path>) -> Result<Self> {
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
        let mut said = BufReader::new(child.stdout.take().context("no output")?);
        let mut line = String::new();
        said.read_line(&mut line)?;
        let address = line.trim().rsplit([' ', '/']).next().unwrap_or_default();
        let address = String::from(address);
        if !address.contains(':') {
            bail!("{command:?} did not say where it listens: {line}");
        }
        // Whatever else it says must not fill the pipe.
        std::thread::spawn(move || said.read_to_end(&mut Vec::new()));
        Ok(Self { child, address })
    }

    fn address(&self) -> &str {
        &self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A module, a configuration and a journal.
struct Folder {
    folder: TempDir,
}

impl Folder {
    fn new(upstream: &str, model: &str) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let module: PathBuf = folder.path().join("cognitive/modules/measured");
        fs::create_dir_all(&module)?;
        fs::write(module.join("module.yaml"), MANIFEST)?;
        fs::write(module.join("schema.json"), SCHEMA)?;
        fs::write(module.join("prompt.md"), "Review the code.\n\n$INPUT\n")?;
        fs::write(
            folder.path().join("cogn.toml"),
            format!(
                "[[backends]]\nname = \"upstream\"\nkind = \"openai\"\nbase_url = \"http://{upstream}/v1\"\nmodel = \"{model}\"\n"
            ),
        )?;
        Ok(Self { folder })
    }

    fn serve(&self, cogn: &Path) -> Result<Server> {
        let journal = self.folder.path().join("journal.db");
        let journal = journal.to_str().context("a path that is no text")?;
        let arguments = ["serve", "--listen", "127.0.0.1:0", "--journal", journal];
        Server::start(cogn, "1", &arguments, Some(self.folder.path()))
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
  max_duration_ms: 30000
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
