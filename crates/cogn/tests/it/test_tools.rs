//! Tools of others that tests are run with, from the Python and Node.js registries. They are pinned by hashes,
//! installed once and kept in the user's cache folder.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

/// Fails with what the command said.
pub(crate) fn succeed(command: &mut Command) -> String {
    let output = command.output().expect("the command runs");
    let said = String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned();
    assert!(output.status.success(), "{command:?}\n{said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A file of this crate's tests.
pub(crate) fn fixture(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(path)
}

/// A Python environment with what a file of requirements names.
pub(crate) fn python(name: &str, requirements: &str) -> PathBuf {
    let requirements = fixture(requirements);
    once(name, std::slice::from_ref(&requirements), |folder| {
        succeed(Command::new("python3").args(["-m", "venv"]).arg(folder));
        let mut pip = Command::new(folder.join("bin/pip"));
        pip.args(["install", "--quiet", "--require-hashes", "--requirement"]);
        succeed(pip.arg(&requirements));
    })
}

/// A folder with the packages that a lock file names.
pub(crate) fn node(name: &str, folder: &str) -> PathBuf {
    let files = ["package.json", "package-lock.json"].map(|file| fixture(folder).join(file));
    once(name, &files, |folder| {
        fs::create_dir_all(folder).unwrap();
        for file in &files {
            fs::copy(file, folder.join(file.file_name().unwrap())).unwrap();
        }
        let mut npm = Command::new("npm");
        // `ci` would refuse a lock file that was made elsewhere: it misses what other platforms need.
        npm.args(["install", "--ignore-scripts", "--no-audit", "--no-fund"]);
        succeed(npm.current_dir(folder));
    })
}

/// Makes a folder if nobody has made it from these files yet; others wait meanwhile.
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
