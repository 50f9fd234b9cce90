//! The JSON output of every command conforms to its published schema.

use std::fs;
use std::path::PathBuf;

use assert_cmd::Command;
use jsonschema::Validator;
use serde_json::Value;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn schema(name: &str) -> Validator {
    let path = root().join(format!("docs/reference/schemas/{name}.schema.json"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    jsonschema::draft7::new(&serde_json::from_str(&text).unwrap()).unwrap()
}

fn print(args: &[&str]) -> Value {
    let modules = root().join("examples/modules");
    let output = Command::new(env!("CARGO_BIN_EXE_cogn"))
        .args(args)
        .args(["--json", "--modules"])
        .arg(modules)
        .current_dir(root())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{args:?}: {error}\n{stderr}"))
}

fn check(name: &str, args: &[&str]) -> Value {
    let printed = print(args);
    let errors: Vec<_> = schema(name)
        .iter_errors(&printed)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{args:?}\n{errors:#?}");
    printed
}

#[test]
fn every_schema_is_valid_and_listed() {
    let index = fs::read_to_string(root().join("docs/reference/json.md")).unwrap();
    for entry in fs::read_dir(root().join("docs/reference/schemas")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap();
        let value: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(
            value["$schema"], "http://json-schema.org/draft-07/schema#",
            "{name}"
        );
        assert!(jsonschema::draft7::meta::is_valid(&value), "{name}");
        assert!(
            value["title"].is_string() && value["description"].is_string(),
            "{name}"
        );
        assert!(
            index.contains(&format!("(schemas/{name})")),
            "{name} is not listed in json.md"
        );
    }
}

#[test]
fn every_listed_schema_exists() {
    let index = fs::read_to_string(root().join("docs/reference/json.md")).unwrap();
    for link in index
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
    {
        assert!(
            root().join("docs/reference").join(link).try_exists().unwrap(),
            "{link}"
        );
    }
}

#[test]
fn explain_conforms_to_its_schema() {
    check("explain", &["explain"]);
    for code in ["E1000", "W4010", "M3005"] {
        check("explain", &["explain", code]);
    }
}

#[test]
fn conformance_conforms_to_its_schema() {
    check("conformance", &["conformance"]);
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write(
        "a.json",
        r#"{"$test":{"expects":"accept","conformance_level":1},"envelope":{}}"#,
    );
    write(
        "b.json",
        r#"{"$test":{"expects":"accept","conformance_level":1},"registry":{},"odd":1}"#,
    );
    write("c.json", "{}");
    write("d.json", "{");
    let printed = check(
        "conformance",
        &["conformance", "--vectors", folder.path().to_str().unwrap()],
    );
    assert_eq!(printed["problems"].as_array().unwrap().len(), 2);
}

#[test]
fn list_conforms_to_its_schema() {
    let printed = check("list", &["list"]);
    assert!(printed.as_array().is_some_and(|rows| rows.len() > 5));
}

#[test]
fn keys_and_usage_conform_to_their_schemas() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal.db");
    let journal = journal.to_str().unwrap();
    let made = check(
        "keys",
        &[
            "keys",
            "create",
            "n",
            "--rate",
            "5/s",
            "--module",
            "m",
            "--journal",
            journal,
        ],
    );
    let id = made["id"].as_str().unwrap();
    let listed = check("keys", &["keys", "list", "--journal", journal]);
    assert_eq!(listed.as_array().unwrap().len(), 1);
    check("keys", &["keys", "revoke", id, "--journal", journal]);
    check("usage", &["usage", "--journal", journal]);
}

/// Every saved reply of the examples, valid or not, becomes an envelope in both profiles.
#[test]
fn check_conforms_to_its_schema() {
    let mut checked = 0;
    for entry in fs::read_dir(root().join("examples/modules")).unwrap() {
        let module = entry.unwrap().path();
        let Ok(replies) = fs::read_dir(module.join("tests/replies")) else {
            continue;
        };
        for reply in replies {
            let reply = reply.unwrap().path();
            let chunks = reply.extension().is_some_and(|ending| ending == "ndjson");
            let mut args = vec!["check", module.to_str().unwrap(), reply.to_str().unwrap()];
            if chunks {
                args.push("--chunks");
            }
            check("envelope", &args);
            args.extend(["--envelope", "cep-2.2"]);
            check("envelope-cep-2.2", &args);
            checked += 1;
        }
    }
    let module = root().join("examples/modules/code-simplifier");
    let args = ["check", module.to_str().unwrap(), "README.md"];
    let printed = check("envelope", &args);
    assert_eq!(printed["ok"], false);
    assert!(checked > 5, "{checked}");
}

#[test]
fn migrate_conforms_to_its_schema() {
    let printed = check("migrate", &["migrate", "--all", "--dry-run", "--to", "2.5"]);
    let modules = printed["modules"].as_array().unwrap();
    assert!(
        modules.iter().any(|module| module["status"] == "planned"),
        "{modules:#?}"
    );
    let broken = tempfile::tempdir().unwrap();
    fs::write(broken.path().join("module.yaml"), "a: [").unwrap();
    check(
        "migrate",
        &["migrate", "--dry-run", broken.path().to_str().unwrap()],
    );
}

#[test]
fn new_conforms_to_its_schema() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fresh-module");
    let printed = check(
        "new",
        &[
            "new",
            "fresh-module",
            "--yes",
            "--dir",
            folder.path().to_str().unwrap(),
        ],
    );
    assert!(path.join("module.yaml").is_file(), "{printed}");
}

#[test]
fn validate_conforms_to_its_schema() {
    let printed = check("validate", &["validate", "--all"]);
    assert!(
        printed["modules"]
            .as_array()
            .is_some_and(|modules| modules.len() > 5)
    );
    let broken = tempfile::tempdir().unwrap();
    fs::write(broken.path().join("module.yaml"), "name: A\ntier: x\n").unwrap();
    let printed = check(
        "validate",
        &["validate", "--v25", broken.path().to_str().unwrap()],
    );
    assert_eq!(printed["modules"][0]["ok"], false);
}

#[test]
fn compose_conforms_to_its_schema() {
    check("compose", &["compose", "change-gate"]);
}

#[test]
fn info_conforms_to_its_schema() {
    for row in print(&["list"]).as_array().unwrap() {
        check("info", &["info", row["name"].as_str().unwrap()]);
    }
}

#[test]
fn route_conforms_to_its_schema() {
    let config = "examples/routing/cogn.toml";
    let plan = check(
        "route",
        &["route", "examples/routing/chat.json", "--config", config],
    );
    assert_eq!(plan["order"][0]["name"], "overloaded");
    let refused = check(
        "route",
        &["route", "examples/routing/picture.json", "--config", config],
    );
    assert_eq!(refused["code"], "E4011");
}

#[test]
fn trace_conforms_to_its_schema() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace.json");
    let input = "examples/modules/text-classifier/tests/invoice.input.json";
    let config = "examples/routing/cogn.toml";
    print(&[
        "run",
        "text-classifier",
        input,
        "--config",
        config,
        "--trace",
        file.to_str().unwrap(),
    ]);
    let trace: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let errors: Vec<_> = schema("trace")
        .iter_errors(&trace)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}\n{trace:#}");
    assert_eq!(trace["route"]["attempts"][1]["outcome"], "succeeded");
    assert_eq!(trace["route"]["rejected"]["retired"], "out of service (weight 0)");
}

#[test]
fn test_conforms_to_its_schema() {
    let printed = check("test", &["test", "--all"]);
    assert_eq!(printed["ok"], true, "{printed:#}");
    let folder = tempfile::tempdir().unwrap();
    check(
        "new",
        &[
            "new",
            "fresh-module",
            "--yes",
            "--dir",
            folder.path().to_str().unwrap(),
        ],
    );
    let fresh = folder.path().join("fresh-module");
    for status in ["passed", "unrecorded"] {
        let printed = check("test", &["test", fresh.to_str().unwrap()]);
        assert_eq!(printed["modules"][0]["cases"][0]["status"], status);
        fs::remove_dir_all(fresh.join("tests/recordings")).ok();
    }
}
