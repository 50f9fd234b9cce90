//! JavaScript clients.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use super::packages::{folder, node_modules, succeed};
use super::setup::Scene;

/// A JavaScript test program. Node.js resolves packages next to the program, so both are put into one folder.
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
    let printed = succeed(command);
    // Tests that were not run do not count as passed.
    assert!(
        !printed.contains("# tests 0") && printed.contains("# skipped 0"),
        "{printed}"
    );
}

fn passes_on_stage(name: &str) {
    let scene = Scene::new();
    let mut command = program(&scene.folder(), name);
    passes(scene.describe(&mut command));
}

#[test]
fn openai_javascript_client() {
    passes_on_stage("openai_client.mjs");
}

#[test]
fn anthropic_javascript_client() {
    passes_on_stage("anthropic_client.mjs");
}

#[test]
fn vercel_ai_javascript_client() {
    passes_on_stage("ai_sdk.mjs");
}
