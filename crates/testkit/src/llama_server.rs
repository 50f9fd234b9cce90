//! A real model behind real protocols: llama.cpp's server with a small model, started once per test binary.
//! The program comes from the Python registry in a pinned version, is verified by its hash, and is cached in
//! the user's cache folder. The server ends with the process that started it.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use crate::language_model;

const REQUIREMENTS: &str = "\
xllamacpp==2026.10.11549 --hash=sha256:c54e7d13520ecc989c63dc99d55de3065e2f343a91f43f053d16b5e62077c261
";
/// Changes with the cached content.
const FOLDER: &str = "llama-2026.10.11549";

/// Reads its standard input to the end, so that the server ends with the test process.
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
    /// The server ends when this is dropped.
    _process: Child,
}

impl Llama {
    /// The server of this test binary, started on first use.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Llama> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }

    /// The address followed by `path`.
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
            .arg(language_model::small_model())
            .arg(address.port().to_string())
            .env("PYTHONPATH", folder.join("site"))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        // Loading takes a second, on a busy machine much longer.
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

/// The folder with the program, created on first use. Several test binaries may request it at once.
fn installed() -> PathBuf {
    let cache = language_model::cache_folder().unwrap();
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
    fs::remove_dir_all(&wheels).unwrap();
}

fn run(command: &mut Command) {
    let status = command.status();
    assert!(
        status.as_ref().is_ok_and(std::process::ExitStatus::success),
        "{command:?}: {status:?}"
    );
}
