//! Clients for JavaScript.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use super::packages::{folder, node_modules, succeed};
use super::scene::Scene;

/// Modules are looked for beside the program, so both are brought together.
fn passes(program: &str) {
    let modules = node_modules();
    let scene = Scene::new();
    let stage = scene.folder();
    symlink(modules, stage.join("node_modules")).unwrap();
    for file in [program, "scene.mjs"] {
        fs::copy(folder().join(file), stage.join(file)).unwrap();
    }
    let mut command = Command::new("node");
    scene.describe(&mut command).args(["--test", program]);
    let said = succeed(command.current_dir(stage));
    // Nothing that was not run counts as passed.
    assert!(
        !said.contains("# tests 0") && said.contains("# skipped 0"),
        "{said}"
    );
}

#[test]
fn openais_client_for_javascript() {
    passes("openai_client.mjs");
}

#[test]
fn anthropics_client_for_javascript() {
    passes("anthropic_client.mjs");
}

#[test]
fn vercels_ai_for_javascript() {
    passes("ai_sdk.mjs");
}
