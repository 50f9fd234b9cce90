//! Python clients.

use std::process::Command;

use super::packages::{folder, python, succeed};
use super::setup::Scene;

fn passes(program: &str) {
    let python = python();
    let scene = Scene::new();
    let mut command = Command::new(python);
    scene.describe(&mut command).arg(folder().join(program));
    let printed = succeed(command.current_dir(scene.folder()));
    // Tests that were not run do not count as passed.
    assert!(
        !printed.contains("Ran 0") && !printed.contains("skipped"),
        "{printed}"
    );
}

#[test]
fn openai_python_client() {
    passes("openai_client.py");
}

#[test]
fn anthropic_python_client() {
    passes("anthropic_client.py");
}

#[test]
fn langchain_python_client() {
    passes("langchain_client.py");
}
