//! Generated references: CLI, manual pages, shell completions and configuration equal the committed files.

use std::fs;
use std::path::PathBuf;

use assert_cmd::Command;
use serde_json::Value;

fn stdout(program: &PathBuf, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn cogn() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_cogn"))
}

/// `COGN_GENERATE=1` writes the file instead.
#[test]
fn generated_cli_reference_is_up_to_date() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/cli.md");
    let generated = stdout(&cogn(), &["internal-docs"]);
    if std::env::var_os("COGN_GENERATE").is_some() {
        fs::write(&path, &generated).unwrap();
    }
    let checked_in = fs::read_to_string(&path).unwrap();
    assert!(
        checked_in == generated,
        "docs/reference/cli.md is stale: run `cargo x gen`"
    );
    assert!(!generated.contains("internal-docs"));
}

#[test]
fn every_shell_has_completions() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = stdout(&cogn(), &["completions", shell]);
        for word in ["explain", "completions", "cogn"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
}

#[test]
fn manual_is_one_page_or_one_per_command() {
    let page = stdout(&cogn(), &["man"]);
    assert!(page.contains(".TH cogn 1"), "{page}");
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("share/man1");
    stdout(&cogn(), &["man", "--dir", inner.to_str().unwrap()]);
    for name in ["cogn.1", "cogn-explain.1", "cogn-list.1"] {
        assert!(inner.join(name).is_file(), "{name}");
    }
    assert!(!inner.join("cogn-internal-docs.1").is_file());
}

#[cfg(unix)]
#[test]
fn cog_is_the_same_program() {
    let folder = tempfile::tempdir().unwrap();
    let cog = folder.path().join("cog");
    std::os::unix::fs::symlink(cogn(), &cog).unwrap();
    assert_eq!(stdout(&cog, &["--version"]), stdout(&cogn(), &["--version"]));
    assert_eq!(
        stdout(&cog, &["explain", "E1000"]),
        stdout(&cogn(), &["explain", "E1000"])
    );
    assert!(stdout(&cog, &["--help"]).contains("Usage: cog "));
    assert!(stdout(&cog, &["completions", "bash"]).contains("complete -F _cog "));
}

/// `COGN_GENERATE=1` writes the file instead.
#[test]
fn generated_configuration_reference_is_up_to_date() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    let schema = fs::read_to_string(folder.join("config.schema.json")).unwrap();
    let generated = configuration_page(&serde_json::from_str(&schema).unwrap());
    let path = folder.join("config.md");
    if std::env::var_os("COGN_GENERATE").is_some() {
        fs::write(&path, &generated).unwrap();
    }
    let checked_in = fs::read_to_string(&path).unwrap();
    assert!(
        checked_in == generated,
        "docs/reference/config.md is stale: run `cargo x gen`"
    );
}

fn configuration_page(schema: &Value) -> String {
    let mut page = String::from(
        "# Configuration\n\nEvery key of `cogn.toml`, from [its JSON Schema](config.schema.json). Later sources win: built-in \
         defaults,\n`/etc/cogn/cogn.toml`, `~/.config/cogn/cogn.toml`, the nearest `cogn.toml` from here upwards (or `--config FILE`; \
         [it has to be trusted](../guide/back-ends.md#files-of-projects)), \
         variables\nsuch as `COGN_TIMEOUTS__IDLE_MS=5000`, flags. `[[backends]]` and `[[credentials]]` of several sources merge by \
         name, so that\n`COGN_BACKENDS__FAST__WEIGHT=0` changes one value of one back-end; every other list is replaced whole. An \
         unknown key is an\nerror that names its line and the nearest known word. A path is seen from the folder of the file in which \
         it stands. A key that is unset by default has no value of its own: its description says what then applies, or the \
         feature is\noff.\n",
    );
    let defaults = built_in_defaults();
    for (name, section) in schema["properties"].as_object().unwrap() {
        let (title, table) = match section.get("items") {
            Some(items) => (format!("[[{name}]]"), items),
            None => (format!("[{name}]"), section),
        };
        let about = section["description"].as_str().unwrap_or_default();
        page.push_str(&format!(
            "\n## `{title}`\n\n{about}\n\n| key | value | default | |\n|---|---|---|---|\n"
        ));
        rows(&mut page, "", table, &defaults[name]);
        let each = &table["additionalProperties"];
        if each.is_object() {
            let about = each["description"].as_str().unwrap_or_default();
            page.push_str(&format!("| `NAME` | string, or a table | unset | {about} |\n"));
            rows(&mut page, "NAME.", &each["then"], &Value::Null);
        }
    }
    page
}

/// The values of `defaults.toml`, whose lines are a section, or a key and a value in JSON.
fn built_in_defaults() -> Value {
    let mut defaults = Value::Null;
    let mut section = "";
    for line in include_str!("../../src/config/defaults.toml").lines() {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']');
        } else if let Some((key, value)) = line.split_once(" = ") {
            defaults[section][key] = serde_json::from_str(value).unwrap();
        }
    }
    defaults
}

/// `built_in` has the values of `defaults.toml` for the keys of the table.
fn rows(page: &mut String, before: &str, table: &Value, built_in: &Value) {
    for (key, value) in table["properties"].as_object().into_iter().flatten() {
        let name = format!("{before}{key}");
        let about = value["description"]
            .as_str()
            .unwrap_or_default()
            .replace('|', "\\|");
        let default = default_of(key, value, table, &built_in[key]);
        page.push_str(&format!("| `{name}` | {} | {default} | {about} |\n", form(value)));
        rows(page, &format!("{name}."), value, &built_in[key]);
        let each = &value["additionalProperties"];
        if each.is_object() {
            rows(page, &format!("{name}.NAME."), each, &Value::Null);
        }
    }
}

/// The built-in value of a key, the value that the code uses without one, or that there is none.
fn default_of(key: &str, value: &Value, table: &Value, built_in: &Value) -> String {
    let required = table["required"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|one| one == key);
    let code_default = value.get("default").unwrap_or(&Value::Null);
    assert!(
        built_in.is_null() || code_default.is_null(),
        "`{key}` has a default in two places"
    );
    match (built_in, code_default) {
        (Value::Null | Value::Object(_), Value::Null) if required => String::from("required"),
        (Value::Null | Value::Object(_), Value::Null) => String::from("unset"),
        (Value::Null, value) | (value, _) => format!("`{value}`"),
    }
}

/// The allowed values of a key, in a few words.
fn form(value: &Value) -> String {
    let words = |list: &Value| {
        let words = list.as_array().into_iter().flatten().filter_map(Value::as_str);
        words
            .map(|word| format!("`{word}`"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    if value.get("enum").is_some() {
        return words(&value["enum"]);
    }
    if value.get("then").is_some() {
        return format!("{}, or a table", words(&value["then"]["enum"]));
    }
    let range = match (value.get("minimum"), value.get("maximum")) {
        (Some(low), Some(high)) => format!(", {low} to {high}"),
        (Some(low), None) => format!(", at least {low}"),
        _ => String::new(),
    };
    match value["type"].as_str() {
        Some("array") => format!("list: {}", form(&value["items"])),
        Some("object") => String::from("table"),
        Some(kind) => format!("{kind}{range}"),
        None => String::new(),
    }
}
