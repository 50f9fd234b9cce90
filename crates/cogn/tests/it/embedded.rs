//! The embedded model: without configuration and key, a run is answered in this process.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

#[cfg(feature = "local")]
use serde_json::Value;

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/modules")
}

fn cogn(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cogn"));
    command
        .env_clear()
        .env("HOME", folder)
        .env("COGNITIVE_MODULES_PATH", examples())
        .current_dir(folder)
        .args(arguments);
    command.output().expect("cogn starts")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn input() -> String {
    examples()
        .join("text-classifier/tests/invoice.input.json")
        .display()
        .to_string()
}

#[cfg(not(feature = "local"))]
#[test]
fn build_without_embedded_model_explains_how_to_get_it() {
    let folder = tempfile::tempdir().expect("a folder");
    for extra in [&[][..], &["--backend", "local"]] {
        let mut arguments = vec!["run", "text-classifier"];
        let input = input();
        arguments.push(&input);
        arguments.extend(extra);
        let output = cogn(folder.path(), &arguments);
        assert_eq!(output.status.code(), Some(2));
        let text = stderr(&output);
        assert!(
            text.contains("E4001") && text.contains("--features local"),
            "{text}"
        );
    }
}

#[cfg(feature = "local")]
#[test]
fn missing_weights_are_reported_with_pull_command() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = input();
    let output = cogn(folder.path(), &["run", "text-classifier", &input]);
    assert_eq!(output.status.code(), Some(2));
    let text = stderr(&output);
    assert!(
        text.contains("E4001") && text.contains("cogn models pull"),
        "{text}"
    );
}

#[cfg(feature = "local")]
#[test]
fn run_after_pull_needs_no_key() {
    let folder = tempfile::tempdir().expect("a folder");
    let weights = testkit::language_model::small_model().display().to_string();
    let pulled = cogn(
        folder.path(),
        &["models", "pull", &weights, "--name", "smollm2-135m-instruct"],
    );
    assert!(pulled.status.success(), "{}", stderr(&pulled));
    requantised_digest_is_the_known_one(folder.path());
    let input = input();
    let output = cogn(folder.path(), &["run", "text-classifier", &input, "--json"]);
    let envelope: Value = serde_json::from_slice(&output.stdout).expect("an envelope");
    assert_eq!(envelope["ok"], true, "{envelope}");
    assert_eq!(envelope["meta"]["model"], "local/smollm2-135m-instruct");
    let labels = ["billing", "bug", "feature", "account", "other"];
    assert!(
        labels.iter().any(|label| envelope["data"]["label"] == *label),
        "{envelope}"
    );

    // The streamed run folds into an envelope with the same data: sampling is deterministic.
    let streamed = cogn(
        folder.path(),
        &["run", "text-classifier", &input, "--json", "--stream"],
    );
    let assembled = module::stream::assemble_ndjson(&streamed.stdout);
    assert!(assembled.is_ok() && assembled.last_seq > 2, "{assembled:?}");
    assert_eq!(assembled.envelope["data"], envelope["data"]);
}

/// A pull by name verifies the digest after requantising; here the file is installed under that name.
#[cfg(feature = "local")]
fn requantised_digest_is_the_known_one(folder: &Path) {
    let listed = cogn(folder, &["models", "list", "--json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).expect("a list");
    let rows = listed.as_array().expect("a list");
    let entry = rows
        .iter()
        .find(|row| row["name"] == "smollm2-135m-instruct")
        .expect("listed");
    let note = std::fs::read(folder.join(".local/share/cogn/models/smollm2-135m-instruct.json"));
    let note: Value = serde_json::from_slice(&note.expect("a manifest")).expect("JSON");
    assert!(entry["requantised_sha256"].is_string(), "{entry}");
    assert_eq!(entry["requantised_sha256"], note["installed_sha256"]);
    assert_eq!(entry["sha256"], note["sha256"]);
}
