//! `cogn doctor`: each line reports a state and what to do.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::http::{MockServer, ScriptedResponse};

use crate::workspace::{Ran, Workspace};

fn rows(ran: &Ran) -> Vec<Value> {
    let text = ran.stdout();
    serde_json::from_str(&text).unwrap_or_else(|why| panic!("{why}: {text}"))
}

fn state(rows: &[Value], name: &str) -> Value {
    let found = rows.iter().find(|row| row["name"] == name);
    found.unwrap_or_else(|| panic!("{name} is not in {rows:#?}"))["state"].clone()
}

#[test]
fn machine_that_can_run_modules_is_ok() {
    let workspace = Workspace::new();
    workspace.good("cognitive/modules/sorter");
    let config = "[[backends]]\nname = \"played\"\nkind = \"scripted\"\nscript = \"a.yaml\"\n";
    std::fs::write(workspace.path().join("cogn.toml"), config).expect("it can be written");
    std::fs::write(workspace.path().join("a.yaml"), "- reply: hello\n").expect("it can be written");
    let ran = workspace.run(&["--json", "doctor"]);
    let rows = rows(&ran);
    for name in [
        "configuration",
        "back-end played",
        "embedded model",
        "modules",
        "models folder",
        "data folder",
    ] {
        assert_eq!(state(&rows, name), json!("ok"), "{name}");
    }
    assert_eq!(ran.code(), 0);
    let text = workspace.run(&["doctor"]).stdout();
    assert!(text.contains("ok") && text.contains("1 found"), "{text}");
}

fn back_end(name: &str, url: &str, model: &str) -> String {
    format!("[[backends]]\nname = \"{name}\"\nkind = \"openai\"\nbase_url = \"{url}\"\nmodel = \"{model}\"\n")
}

fn diagnose(configuration: &str, arguments: &[&str]) -> (i32, Vec<Value>) {
    let workspace = Workspace::new();
    std::fs::write(workspace.path().join("cogn.toml"), configuration).expect("it can be written");
    let ran = workspace.run(&[&["--json", "doctor"], arguments].concat());
    (ran.code(), rows(&ran))
}

fn message(rows: &[Value], name: &str) -> String {
    let found = rows.iter().find(|row| row["name"] == name).expect("a row");
    String::from(found["message"].as_str().expect("a text"))
}

/// The servers of the back-ends are contacted; a back-end with an unreachable server is not usable.
#[test]
fn back_ends_are_contacted() {
    let models = r#"{"data": [{"id": "small-instruct"}]}"#;
    let good = MockServer::with_responses(ScriptedResponse::good("application/json", models));
    // Nothing listens on port 1.
    let dead = back_end("dead", "http://127.0.0.1:1/v1", "m");
    let all = [
        dead.clone(),
        back_end("good", &good.url("/v1"), "small-instruct"),
        back_end("misnamed", &good.url("/v1"), "small-instrct"),
    ];
    let (code, found) = diagnose(&all.concat(), &["--timeout", "60s"]);
    assert_eq!(state(&found, "back-end good"), json!("ok"), "{found:#?}");
    let address = good.url("");
    let text = message(&found, "back-end good");
    assert!(text.starts_with(address.trim_start_matches("http://")), "{text}");
    assert!(text.contains("1 models"), "{text}");
    assert_eq!(state(&found, "back-end dead"), json!("warn"));
    let text = message(&found, "back-end dead");
    assert!(
        text.starts_with("unreachable: back-end `dead` at 127.0.0.1:1: "),
        "{text}"
    );
    let text = message(&found, "back-end misnamed");
    assert!(
        text.contains("does not list the model `small-instrct`; did you mean `small-instruct`?"),
        "{text}"
    );
    assert_eq!(code, 0, "one is usable");
    let (code, found) = diagnose(&dead, &[]);
    assert_eq!((code, state(&found, "back-end dead")), (1, json!("bad")));
    let (code, found) = diagnose(&dead, &["--offline"]);
    assert_eq!((code, state(&found, "back-end dead")), (0, json!("ok")));
}

#[test]
fn contact_with_a_silent_server_is_bounded() {
    let answer = ScriptedResponse::good("application/json", "{}").after(Duration::from_secs(600));
    let silent = MockServer::with_responses(answer);
    let (code, found) = diagnose(
        &back_end("silent", &silent.url("/v1"), "m"),
        &["--timeout", "50ms"],
    );
    let text = message(&found, "back-end silent");
    assert!(text.contains("no response within 50 ms"), "{text}");
    assert_eq!(code, 1);
}

#[test]
fn missing_parts_are_named_with_a_fix() {
    let workspace = Workspace::new();
    let config = "[[credentials]]\nname = \"key\"\nenv = \"NOBODY_SETS_THIS\"\n\
                  [[backends]]\nname = \"mine\"\nkind = \"openai\"\ncredential = \"key\"\n\
                  [network]\nca_files = [\"gone.pem\"]\n";
    std::fs::write(workspace.path().join("cogn.toml"), config).expect("it can be written");
    let ran = workspace.run(&["--json", "doctor"]);
    let found = rows(&ran);
    assert_eq!(ran.code(), 1);
    assert_eq!(state(&found, "secret key"), json!("warn"));
    assert_eq!(state(&found, "back-end mine"), json!("bad"));
    assert_eq!(state(&found, "network"), json!("bad"));
    assert_eq!(state(&found, "modules"), json!("warn"));
    for row in &found {
        assert_eq!(row["hint"].is_string(), row["state"] != "ok", "{row}");
    }
    std::fs::write(workspace.path().join("cogn.toml"), "[[backend]]\n").expect("it can be written");
    let found = rows(&workspace.run(&["--json", "doctor"]));
    assert_eq!(state(&found, "configuration"), json!("bad"));
}

#[test]
fn quarantined_accounting_records_are_shown() {
    let workspace = Workspace::new();
    let folder = workspace.path().join("home/.local/state/cogn");
    let shown = || {
        let rows = rows(&workspace.run(&["--json", "doctor"]));
        let found = rows.into_iter().find(|row| row["name"] == "accounting records");
        found.expect("it is checked")
    };
    // Nothing has been stored yet.
    assert_eq!(shown()["state"], json!("ok"));
    std::fs::create_dir_all(&folder).expect("it can be created");
    let file = folder.join("journal.db-quarantine-0123456789abcdef");
    std::fs::write(&file, "{}\nx\n").expect("it can be written");
    let found = shown();
    assert_eq!(found["state"], json!("warn"));
    let message = found["message"].as_str().expect("it is text");
    assert!(
        message.starts_with("2 unreadable in ") && message.contains("changed since"),
        "{message}"
    );
}
