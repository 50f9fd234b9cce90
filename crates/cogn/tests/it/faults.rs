//! The fault table with the whole program: a run on a faulty back-end ends with the code of the reference,
//! and fails over if the reference says so.

use std::collections::BTreeMap;
use std::process::{Command, Output};

use ir::{Dialect, ErrorKind, Phase};
use serde_json::{Value, json};
use testkit::fault::{FAULTS, Fault};
use testkit::http::{MockServer, ScriptedResponse, scripted};

use crate::harness::user_configuration_in;

const REPLY: &str = include_str!("../../../../examples/modules/text-classifier/tests/replies/ok-plain.json");
const PAGE: &str = include_str!("../../../../docs/reference/faults.md");

fn run(config: &str) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("cogn.toml"), config).expect("it can be written");
    let modules = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/modules");
    let mut command = Command::new(env!("CARGO_BIN_EXE_cogn"));
    command
        .current_dir(folder.path())
        .env_clear()
        .env("HOME", folder.path())
        .env("XDG_CONFIG_HOME", user_configuration_in(folder.path()));
    command.args([
        "--json",
        "--modules",
        modules,
        "run",
        "text-classifier",
        "--args",
        "I was charged twice",
    ]);
    command.output().expect("cogn starts")
}

fn back_end(name: &str, url: &str, priority: i32, more: &str) -> String {
    format!(
        "[[backends]]\nname = \"{name}\"\nkind = \"openai\"\nbase_url = \"{url}\"\nmodel = \"{name}\"\npriority = {priority}\n{more}\n"
    )
}

/// Short timeouts only for the faults that are detected by a timeout.
fn short_timeouts(fault: &Fault) -> &'static str {
    match (fault.kind, fault.status, fault.phase) {
        (ErrorKind::Timeout, None, Phase::MidStream) => "timeouts = { idle_ms = 500 }",
        (ErrorKind::Timeout, None, _) => "timeouts = { first_byte_ms = 500 }",
        _ => "",
    }
}

fn envelope(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    let why = String::from_utf8_lossy(&output.stderr);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text} {why}"))
}

#[test]
fn every_fault_ends_in_its_code_or_fails_over() {
    let reply = serde_json::from_str::<Value>(REPLY).expect("the reply is JSON");
    let spare = scripted(Dialect::OpenaiChat, &format!("- reply: {reply}\n"));
    let mut wrong = Vec::new();
    for fault in FAULTS {
        let broken = fault.start(Dialect::OpenaiChat);
        let once = "[routing]\npolicy = \"priority\"\nretry = { same_backend_max = 0 }\n";
        let alone = format!(
            "{once}{}",
            back_end("broken", &broken.url, 1, short_timeouts(fault))
        );
        let output = run(&alone);
        let ended = envelope(&output);
        let code = ended["error"]["code"].as_str().unwrap_or_default();
        if code != fault.code || output.status.code() != Some(1) {
            wrong.push(format!("{}: {} and not {code}", fault.name, fault.code));
        }
        let both = format!("{alone}{}", back_end("spare", &spare.url(""), 0, ""));
        let ended = envelope(&run(&both));
        if (ended["ok"] == true) != fault.elsewhere {
            wrong.push(format!("{}: elsewhere: {ended}", fault.name));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Complete but unusual responses: no connection fault, so no failover.
#[test]
fn unusual_finish_reasons_and_broken_tool_calls_are_judged_as_answers() {
    let reply = serde_json::from_str::<Value>(REPLY)
        .expect("the reply is JSON")
        .to_string();
    let strange = json!({"content": reply});
    let call = json!({"tool_calls": [{"index": 0, "id": "c", "type": "function",
        "function": {"name": "look", "arguments": "{\"where\": "}}]});
    // The module declares no tool, so any tool call is unexpected.
    for (delta, reason, code) in [(strange, "mystery", None), (call, "tool_calls", Some("E4007"))] {
        let first = json!({"choices": [{"index": 0, "delta": delta}]});
        let last = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]});
        let body = format!("data: {first}\n\ndata: {last}\n\ndata: [DONE]\n\n");
        let server = MockServer::with_responses(ScriptedResponse::good("text/event-stream", body));
        let ended = envelope(&run(&back_end("strange", &server.url(""), 0, "")));
        assert_eq!(ended["error"]["code"].as_str(), code, "{ended}");
        assert_eq!(ended["ok"] == true, code.is_none(), "{ended}");
    }
}

/// The reference page contains the table that is tested.
#[test]
fn reference_has_the_same_table() {
    let documented: BTreeMap<&str, (&str, &str)> = PAGE
        .lines()
        .filter_map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            match cells.as_slice() {
                [name, code, _, elsewhere] if code.starts_with("[E") => {
                    let code = code.get(1..6)?;
                    Some((*name, (code, *elsewhere)))
                }
                _ => None,
            }
        })
        .collect();
    let tested = FAULTS.iter().map(|fault| {
        let elsewhere = if fault.elsewhere { "yes" } else { "no" };
        (fault.name, (fault.code, elsewhere))
    });
    assert_eq!(documented, tested.collect());
}

/// The retryable column of the registry.
#[test]
fn reference_agrees_with_registry_on_retryable() {
    for line in PAGE.lines().filter(|line| line.contains("| [E")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let code = cells[1].get(1..6).and_then(module::Code::find).expect("a code");
        let expected = match code.recoverable() {
            module::code::Recoverable::Yes => "yes",
            module::code::Recoverable::No => "no",
            module::code::Recoverable::Depends => "depends",
        };
        assert_eq!(cells[2], expected, "{line}");
    }
}
