//! External programs of tests, installed by the tests if missing. No test is skipped because a program is
//! missing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

static INSTALLING: Mutex<()> = Mutex::new(());

/// Makes sure that these programs are installed; each is listed with its Debian package.
pub fn require(programs: &[(&str, &str)]) {
    let _guard = INSTALLING.lock().unwrap();
    let missing: Vec<&str> = programs
        .iter()
        .filter(|(program, _)| !is_there(program))
        .map(|(_, package)| *package)
        .collect();
    if missing.is_empty() {
        return;
    }
    let apt = |arguments: &[&str]| {
        Command::new("apt-get")
            .args(["-o", "DPkg::Lock::Timeout=300", "-qq", "-y"])
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .output()
    };
    let install = [&["install", "--no-install-recommends"], missing.as_slice()].concat();
    let done =
        |output: std::io::Result<std::process::Output>| output.is_ok_and(|output| output.status.success());
    // Package lists may be outdated or missing: they are updated only if the first try fails.
    let installed = done(apt(&install)) || (done(apt(&["update"])) && done(apt(&install)));
    assert!(
        installed,
        "tests need these packages: apt-get install {}",
        missing.join(" ")
    );
}

fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Runs a program and returns its output.
pub fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Downloads the source archive of a Python package from the registry that is configured on this machine,
/// verified by its digest, and unpacks it. Returns the folder with its contents.
pub fn unpack_source_archive(name: &str, version: &str, sha256: &str, folder: &Path) -> PathBuf {
    require(&[("tar", "tar")]);
    let list = folder.join("requirements.txt");
    fs::write(&list, format!("{name}=={version} --hash=sha256:{sha256}\n")).unwrap();
    let (list, target) = (list.to_str().unwrap(), folder.to_str().unwrap());
    let pip = [
        "-m",
        "pip",
        "--disable-pip-version-check",
        "--quiet",
        "download",
        "--no-deps",
    ];
    let what = ["--no-binary", name, "--require-hashes", "-r", list, "-d", target];
    run("python3", &[pip.as_slice(), what.as_slice()].concat());
    let unpacked = format!("{name}-{version}");
    let archive = folder.join(format!("{unpacked}.tar.gz"));
    run("tar", &["-xzf", archive.to_str().unwrap(), "-C", target]);
    folder.join(unpacked)
}

/// Downloads wheels from the registry that is configured on this machine, each verified by the digest in the
/// requirements, and returns their paths sorted by name.
pub fn wheels(requirements: &str, folder: &Path) -> Vec<PathBuf> {
    let list = folder.join("requirements.txt");
    fs::write(&list, requirements).unwrap();
    let wheels = folder.join("wheels");
    let fetched = Command::new("python3")
        .args(["-m", "pip", "--disable-pip-version-check", "--quiet", "download"])
        .args(["--no-deps", "--only-binary=:all:", "--require-hashes", "-r"])
        .arg(&list)
        .arg("-d")
        .arg(&wheels)
        .output()
        .unwrap();
    assert!(
        fetched.status.success(),
        "{}",
        String::from_utf8_lossy(&fetched.stderr)
    );
    let mut paths: Vec<_> = fs::read_dir(&wheels)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    paths
}
