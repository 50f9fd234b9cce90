//! The packages under `clients/`: their own test suites against the binary that was just built.

use std::path::PathBuf;
use std::process::Command;

use crate::harness::binary;

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../clients")
        .join(name)
}

fn succeeds(command: &mut Command) {
    let output = command.env("SERVER_BINARY", binary()).output().unwrap();
    let printed = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&printed));
}

#[test]
fn python_client_recovers() {
    succeeds(
        Command::new("python3")
            .args(["-m", "unittest", "tests.test_client", "tests.test_faults"])
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .current_dir(folder("python")),
    );
}

#[test]
fn typescript_client_recovers() {
    let folder = folder("typescript");
    succeeds(
        Command::new("npm")
            .args(["ci", "--no-audit", "--no-fund"])
            .current_dir(&folder),
    );
    succeeds(Command::new("npm").arg("test").current_dir(&folder));
}
