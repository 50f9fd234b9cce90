//! The clients, installed from their registries in pinned versions with known hashes. They are cached in the
//! user's cache folder, by the hash of the requirement files, and shared by all tests.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};
use testkit::language_model::cache_folder;

/// Folder of the test programs in the clients' languages.
pub(super) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients")
}

/// A Python with the clients installed.
pub(super) fn python() -> PathBuf {
    let installed = installed("python", &["requirements.txt"], |draft| {
        succeed(Command::new("python3").args(["-m", "venv"]).arg(draft));
        let mut pip = Command::new(draft.join("bin/python"));
        pip.args(["-m", "pip", "--disable-pip-version-check", "install", "--quiet"]);
        pip.args(["--no-deps", "--require-hashes", "--requirement"]);
        succeed(pip.arg(folder().join("requirements.txt")));
    });
    installed.join("bin/python")
}

/// The folder in which Node.js finds the clients.
pub(super) fn node_modules() -> PathBuf {
    let files = ["package.json", "package-lock.json"];
    let installed = installed("node", &files, |draft| {
        fs::create_dir_all(draft).unwrap();
        for file in files {
            fs::copy(folder().join(file), draft.join(file)).unwrap();
        }
        let mut npm = Command::new("npm");
        npm.args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"]);
        succeed(npm.current_dir(draft));
    });
    installed.join("node_modules")
}

/// The folder for these requirement files, installed on first use. Several tests may request it at once.
fn installed(name: &str, files: &[&str], install: impl FnOnce(&Path)) -> PathBuf {
    let mut digest = Sha256::new();
    for file in files {
        digest.update(fs::read(folder().join(file)).unwrap());
    }
    let digest = hex::encode(digest.finalize());
    let cache = cache_folder().unwrap();
    let lock = File::create(cache.join(format!("clients-{name}.lock"))).unwrap();
    lock.lock().unwrap();
    let folder = cache.join(format!("clients-{name}-{}", digest.get(..12).unwrap()));
    let ready = folder.join("ready");
    if !ready.is_file() {
        fs::remove_dir_all(&folder).ok();
        install(&folder);
        fs::write(&ready, "").unwrap();
    }
    folder
}

/// Runs a command; panics with its output if it fails.
pub(super) fn succeed(command: &mut Command) -> String {
    let output = command.output().expect("the command runs");
    let printed = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    // Not the whole command: its variables contain keys.
    assert!(
        output.status.success(),
        "{}\n{printed}",
        command.get_program().display()
    );
    printed
}
