//! Third-party tools for tests, from the Python and Node.js registries: pinned by hashes, installed once and
//! cached in the user's cache folder.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

/// Panics with the output of the command.
pub(crate) fn succeed(command: &mut Command) -> String {
    let output = command.output().expect("the command runs");
    let printed = String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned();
    assert!(output.status.success(), "{command:?}\n{printed}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A file of this crate's tests.
pub(crate) fn fixture(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(path)
}

/// A Python environment with the packages of a requirements file.
pub(crate) fn python(name: &str, requirements: &str) -> PathBuf {
    let requirements = fixture(requirements);
    once(name, std::slice::from_ref(&requirements), |folder| {
        succeed(Command::new("python3").args(["-m", "venv"]).arg(folder));
        let mut pip = Command::new(folder.join("bin/pip"));
        pip.args(["install", "--quiet", "--require-hashes", "--requirement"]);
        succeed(pip.arg(&requirements));
    })
}

/// A folder with the packages of a lock file.
pub(crate) fn node(name: &str, folder: &str) -> PathBuf {
    let files = ["package.json", "package-lock.json"].map(|file| fixture(folder).join(file));
    once(name, &files, |folder| {
        fs::create_dir_all(folder).unwrap();
        for file in &files {
            fs::copy(file, folder.join(file.file_name().unwrap())).unwrap();
        }
        let mut npm = Command::new("npm");
        // The lock file names the packages of all platforms; `install` would add missing ones without a hash.
        npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]);
        succeed(npm.current_dir(folder));
    })
}

/// Creates the folder for these files unless it exists; concurrent callers wait.
fn once(name: &str, files: &[PathBuf], make: impl FnOnce(&Path)) -> PathBuf {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| std::env::home_dir().map(|home| home.join(".cache")));
    let cache = cache.expect("a cache folder").join("cogn");
    fs::create_dir_all(&cache).unwrap();
    let lock = File::create(cache.join(format!("{name}.lock"))).unwrap();
    lock.lock().unwrap();
    let mut digest = Sha256::new();
    for file in files {
        digest.update(fs::read(file).unwrap());
    }
    let print = hex::encode(digest.finalize());
    let folder = cache.join(format!("{name}-{}", print.split_at(12).0));
    let ready = folder.join("ready");
    if !ready.is_file() {
        fs::remove_dir_all(&folder).ok();
        make(&folder);
        fs::write(&ready, "").unwrap();
    }
    folder
}
