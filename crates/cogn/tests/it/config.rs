//! `cogn config`, and back-ends from the configuration.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Output};
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};

use crate::harness::user_configuration_in;

const REPLY: &str = include_str!("../../../../examples/modules/text-classifier/tests/replies/ok-plain.json");

/// The binary in a separate folder, with only the configuration of that folder.
fn cogn(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cogn"));
    command
        .current_dir(folder)
        .env_clear()
        .env("HOME", folder)
        .env("XDG_CONFIG_HOME", user_configuration_in(folder))
        .args(arguments);
    command.output().expect("cogn starts")
}

fn folder_with(config: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("cogn.toml"), config).expect("it can be written");
    folder
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Answers one call as an OpenAI server would, and returns the request.
fn openai_server(content: &str) -> (SocketAddr, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    let pieces = content.chars().collect::<Vec<_>>();
    let mut body = String::new();
    for piece in pieces.chunks(7) {
        let piece: String = piece.iter().collect();
        body.push_str(&format!(
            "data: {}\n\n",
            json!({"choices": [{"index": 0, "delta": {"content": piece}}]})
        ));
    }
    let last = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    body.push_str(&format!("data: {last}\n\ndata: [DONE]\n\n"));
    let served = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a caller");
        let mut reader = BufReader::new(stream.try_clone().expect("a second hand"));
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).expect("a line");
            if let Some(value) = line.to_lowercase().strip_prefix("content-length: ") {
                length = value.trim().parse().expect("a number");
            }
            if line.trim().is_empty() {
                break;
            }
            head.push_str(&line);
        }
        let mut asked = vec![0; length];
        reader.read_exact(&mut asked).expect("the body");
        let head_out = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        stream
            .write_all(format!("{head_out}{body}").as_bytes())
            .expect("the caller listens");
        head + &text(&asked)
    });
    (address, served)
}

#[test]
fn module_runs_on_configured_backend() {
    let (address, served) = openai_server(REPLY);
    let config = format!(
        "[[credentials]]\nname = \"key\"\nfile = \"secret.txt\"\n\
         [[backends]]\nname = \"mine\"\nkind = \"openai\"\nbase_url = \"http://{address}/v1\"\nmodel = \"small\"\ncredential = \"key\"\n"
    );
    let folder = folder_with(&config);
    std::fs::write(folder.path().join("secret.txt"), "sk-from-a-file\n").expect("it can be written");
    let modules = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/modules");
    let arguments = [
        "--json",
        "--modules",
        modules,
        "run",
        "text-classifier",
        "--args",
        "I was charged twice",
    ];
    let output = cogn(folder.path(), &arguments);
    let asked = served.join().expect("the server ran");
    assert!(asked.contains("authorization: Bearer sk-from-a-file"), "{asked}");
    assert!(
        asked.contains("\"model\":\"small\"") && asked.contains("json_schema"),
        "{asked}"
    );
    let envelope: Value = serde_json::from_slice(&output.stdout).expect("an envelope");
    let expected: Value = serde_json::from_str(REPLY).expect("the reply is JSON");
    assert_eq!(
        (&envelope["ok"], &envelope["data"]),
        (&json!(true), &expected["data"]),
        "{envelope}"
    );
    assert_eq!(envelope["meta"]["model"], json!("openai/small"));
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn missing_secret_is_reported_as_reason() {
    let config = "[[credentials]]\nname = \"key\"\nenv = \"NOBODY_SETS_THIS\"\n\
                  [[backends]]\nname = \"mine\"\nkind = \"openai\"\nmodel = \"m\"\ncredential = \"key\"\n";
    let folder = folder_with(config);
    let modules = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/modules");
    let output = cogn(
        folder.path(),
        &["--modules", modules, "run", "text-classifier", "--args", "x"],
    );
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains("NOBODY_SETS_THIS is not set"), "{said}");
}

#[test]
fn check_reports_location_and_nearest_key() {
    let folder = folder_with("[[backends]]\nname = \"mine\"\nkind = \"openai\"\nwieght = 1\n");
    let output = cogn(folder.path(), &["config", "check"]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stdout);
    assert!(
        said.contains("cogn.toml:4:1") && said.contains("did you mean `weight`?"),
        "{said}"
    );
    let good = folder_with("[[backends]]\nname = \"mine\"\nkind = \"openai\"\nweight = 1\n");
    assert_eq!(cogn(good.path(), &["config", "check"]).status.code(), Some(0));
}

#[test]
fn show_reports_source_of_each_value() {
    let folder = folder_with("[timeouts]\nidle_ms = 5\n");
    let output = cogn(folder.path(), &["config", "show", "--explain"]);
    let said = text(&output.stdout);
    assert!(
        said.contains("timeouts.idle_ms = 5") && said.contains("cogn.toml:2:1"),
        "{said}"
    );
    assert!(said.contains("timeouts.total_ms = 300000  # default"), "{said}");
    let raw = cogn(folder.path(), &["--json", "config", "show"]);
    let tree: Value = serde_json::from_slice(&raw.stdout).expect("JSON");
    assert_eq!(tree["timeouts"]["idle_ms"], json!(5));
}

#[test]
fn schema_equals_reference() {
    let folder = folder_with("");
    let printed: Value =
        serde_json::from_slice(&cogn(folder.path(), &["config", "schema"]).stdout).expect("JSON");
    let kept = include_str!("../../../../docs/reference/config.schema.json");
    assert_eq!(printed, serde_json::from_str::<Value>(kept).expect("JSON"));
}
