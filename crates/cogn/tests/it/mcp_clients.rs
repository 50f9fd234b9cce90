//! The official MCP clients, unmodified, against the binary that was just built: Python and Node.js, each
//! over pipes and over HTTP, and the inspector. The client programs are in `tests/mcp`.

use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{REPLY, Stage};
use crate::keys::key;
use crate::test_tools::{fixture, node, python, succeed};

/// A stage with one run permit, and a back-end that is slow for certain inputs.
fn stage() -> (Stage, String) {
    let stage = Stage::new();
    stage.module("code-reviewer", "deny", "both");
    stage.configure("[server]\nreload_ms = 20\n[limits]\nruns_max = 1\nqueue_wait_ms = 30000\n");
    let script = stage.script(
        "speeds",
        &json!([
            {"match": "very slowly", "reply": REPLY, "chunk_bytes": 1, "delay_ms": 1_000},
            {"match": "slowly", "reply": REPLY, "chunk_bytes": 4, "delay_ms": 20},
            {"reply": REPLY},
        ]),
    );
    (stage, script)
}

/// `cogn mcp` as a host would start it.
fn piped(client: &mut Command, stage: &Stage, script: &str) {
    let server = stage.cogn();
    client.arg("pipe").arg(server.get_program());
    client.args(server.get_args()).args(["mcp", "--backend", script]);
    client.current_dir(stage.path(""));
}

fn python_client(stage: &Stage) -> Command {
    let python = python("mcp-python", "mcp/requirements.txt").join("bin/python");
    let mut client = Command::new(python);
    client.arg(fixture("mcp/client.py"));
    client.env("MODULES", stage.path("modules"));
    client
}

/// Node.js resolves packages only next to the script.
fn node_client() -> Command {
    let folder = node("mcp-node", "mcp");
    let script = folder.join("client.mjs");
    std::fs::copy(fixture("mcp/client.mjs"), &script).unwrap();
    let mut client = Command::new("node");
    client.arg(script);
    client
}

#[test]
fn python_client_over_pipes() {
    let (stage, script) = stage();
    let mut client = python_client(&stage);
    piped(&mut client, &stage, &script);
    let printed = succeed(&mut client);
    assert_eq!(printed.matches("withdrawn").count(), 2, "{printed}");
}

#[test]
fn python_client_over_http_with_key() {
    let (stage, script) = stage();
    let key = key(&stage, &[]);
    let server = stage.serve_with(&["--require-auth"], &[&script]);
    let mut client = python_client(&stage);
    client.args(["http", &format!("{}/mcp", server.url), &key]);
    let printed = succeed(&mut client);
    assert_eq!(printed.matches("withdrawn").count(), 2, "{printed}");
    // Without the key it is refused.
    let mut client = python_client(&stage);
    client.args(["http", &format!("{}/mcp", server.url)]);
    let output = client.output().unwrap();
    assert!(!output.status.success());
}

#[test]
fn node_client_over_pipes_and_http() {
    let (stage, script) = stage();
    let mut client = node_client();
    piped(&mut client, &stage, &script);
    succeed(&mut client);
    let server = stage.serve(&[&script]);
    let mut client = node_client();
    succeed(client.args(["http", &format!("{}/mcp", server.url)]));
}

#[test]
fn inspector_accepts_the_tools_and_calls_one() {
    let (stage, script) = stage();
    let home = tempfile::tempdir().unwrap();
    let inspect = |target: &[&str], more: &[&str]| -> Value {
        let mut inspector = Command::new("node");
        inspector
            .arg(node("mcp-node", "mcp").join("node_modules/.bin/mcp-inspector"))
            .arg("--cli")
            .args(target)
            .args(more)
            .env("HOME", home.path())
            .current_dir(stage.path(""));
        let printed = succeed(&mut inspector);
        serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {printed}"))
    };
    let server = stage.serve(&[&script]);
    let url = format!("{}/mcp", server.url);
    let modules = stage.path("modules").display().to_string();
    let program = crate::harness::binary().display().to_string();
    let pipe = [
        program.as_str(),
        "--modules",
        &modules,
        "mcp",
        "--backend",
        &script,
    ];
    for target in [&pipe[..], &[url.as_str()]] {
        let listed = inspect(target, &["--method", "tools/list", "--strict"]);
        let names: Vec<_> = listed["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| &tool["name"])
            .collect();
        assert!(names.contains(&&json!("counter")), "{names:?}");
        let call = [
            "--method",
            "tools/call",
            "--tool-name",
            "counter",
            "--tool-arg",
            "text=two words",
        ];
        let called = inspect(target, &call);
        assert_eq!(called["structuredContent"]["data"]["n"], 3, "{called}");
    }
}
