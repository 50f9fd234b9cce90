//! Clients for Python.

use std::process::Command;

use super::packages::{folder, python, succeed};
use super::setup::Scene;

fn passes(program: &str) {
    let python = python();
    let scene = Scene::new();
    let mut command = Command::new(python);
    scene.describe(&mut command).arg(folder().join(program));
    let said = succeed(command.current_dir(scene.folder()));
    // Nothing that was not run counts as passed.
    assert!(!said.contains("Ran 0") && !said.contains("skipped"), "{said}");
}

#[test]
fn openais_client_for_python() {
    passes("openai_client.py");
}

#[test]
fn anthropics_client_for_python() {
    passes("anthropic_client.py");
}

#[test]
fn langchains_client_for_python() {
    passes("langchain_client.py");
}
