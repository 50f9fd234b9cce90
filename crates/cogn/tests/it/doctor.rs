//! `cogn doctor`: each line reports a state and what to do.

use serde_json::{Value, json};

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
        "cache folder",
    ] {
        assert_eq!(state(&rows, name), json!("ok"), "{name}");
    }
    assert_eq!(ran.code(), 0);
    let text = workspace.run(&["doctor"]).stdout();
    assert!(text.contains("ok") && text.contains("1 found"), "{text}");
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
