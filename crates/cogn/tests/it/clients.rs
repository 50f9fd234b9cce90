//! The packages under `clients/`, tested by their own tests against the binary that was just built.

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
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&said));
}

#[test]
fn the_python_client_recovers_from_anything() {
    succeeds(
        Command::new("python3")
            .args(["-m", "unittest", "tests.test_client", "tests.test_faults"])
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .current_dir(folder("python")),
    );
}

#[test]
fn the_typescript_client_recovers_from_anything() {
    let folder = folder("typescript");
    succeeds(
        Command::new("npm")
            .args(["ci", "--no-audit", "--no-fund"])
            .current_dir(&folder),
    );
    succeeds(Command::new("npm").arg("test").current_dir(&folder));
}
