//! Clients for JavaScript.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use super::packages::{folder, node_modules, succeed};
use super::setup::Scene;

/// Tests in JavaScript. Modules are looked for beside the program, so both are brought together.
pub(super) fn program(stage: &Path, name: &str) -> Command {
    symlink(node_modules(), stage.join("node_modules")).unwrap();
    for file in [name, "scene.mjs"] {
        fs::copy(folder().join(file), stage.join(file)).unwrap();
    }
    let mut command = Command::new("node");
    command.args(["--test", name]).current_dir(stage);
    command.env("NO_PROXY", "127.0.0.1");
    command
}

pub(super) fn passes(command: &mut Command) {
    let said = succeed(command);
    // Nothing that was not run counts as passed.
    assert!(
        !said.contains("# tests 0") && said.contains("# skipped 0"),
        "{said}"
    );
}

fn passes_on_stage(name: &str) {
    let scene = Scene::new();
    let mut command = program(&scene.folder(), name);
    passes(scene.describe(&mut command));
}

#[test]
fn openais_client_for_javascript() {
    passes_on_stage("openai_client.mjs");
}

#[test]
fn anthropics_client_for_javascript() {
    passes_on_stage("anthropic_client.mjs");
}

#[test]
fn vercels_ai_for_javascript() {
    passes_on_stage("ai_sdk.mjs");
}
