//! Executes the scenario in a child process under `recorder.c`, and reads its log.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use store::Durability;
use tempfile::TempDir;

use super::scenario::CHILD;

/// A file of the scenario; an entry is written when something is acknowledged.
pub(super) const ACKNOWLEDGED: &str = "acknowledged";

/// The test that executes the scenario in the child process.
const PLAYER: &str = "crash::killed_process_loses_nothing_acknowledged";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Create,
    Write,
    Truncate,
    Sync,
    Unlink,
    Rename,
}

impl Kind {
    const ALL: [Self; 6] = [
        Self::Create,
        Self::Write,
        Self::Truncate,
        Self::Sync,
        Self::Unlink,
        Self::Rename,
    ];
}

#[derive(Debug)]
pub(super) struct Operation {
    pub(super) kind: Kind,
    /// Of a write; the new length of a truncated file.
    pub(super) offset: usize,
    /// Below the folder of the store; empty for the folder.
    pub(super) path: String,
    pub(super) data: Vec<u8>,
}

impl Operation {
    pub(super) fn acknowledges(&self) -> bool {
        self.path == ACKNOWLEDGED
    }

    /// Whether the scenario acknowledges a clean stop.
    pub(super) fn is_stop(&self) -> bool {
        self.acknowledges() && self.data.starts_with(b"stopped")
    }

    /// The new name of a renamed file.
    pub(super) fn text(&self) -> String {
        String::from_utf8(self.data.clone()).unwrap()
    }
}

pub(super) struct Recording {
    pub(super) operations: Vec<Operation>,
}

impl Recording {
    pub(super) fn of(durability: Durability) -> Self {
        record(durability, None)
    }

    /// The number of calls that can fail.
    pub(super) fn fallible(&self) -> usize {
        let fallible = self
            .operations
            .iter()
            .filter(|operation| !operation.acknowledges());
        fallible.count()
    }
}

/// In memory if possible: nothing here depends on real syncs.
pub(super) fn temporary_folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    match memory.is_dir() {
        true => tempfile::tempdir_in(memory).or_else(|_| tempfile::tempdir()),
        false => tempfile::tempdir(),
    }
    .unwrap()
}

/// The compiled recorder.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = LIBRARY.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("recorder.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/crash/recorder.c");
        let mut compile = Command::new("cc");
        compile.args(["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o"]);
        let compiled = compile.arg(&path).arg(&source).arg("-ldl").output().unwrap();
        assert!(
            compiled.status.success(),
            "{}",
            String::from_utf8_lossy(&compiled.stderr)
        );
        (folder, path)
    });
    path
}

/// Executes a test in a child process, where [`super::play`] executes the scenario. `fail` is the
/// number of a call that fails, and its error number.
pub(super) fn record(durability: Durability, fail: Option<(usize, i32)>) -> Recording {
    let (folder, logged) = (temporary_folder(), temporary_folder());
    let folder = folder.path().canonicalize().unwrap();
    let log = logged.path().join("log");
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args([PLAYER, "--exact", "--nocapture"]);
    child.env(CHILD, format!("{durability:?}"));
    child.env("LD_PRELOAD", library());
    child.env("RECORDER_FOLDER", &folder).env("RECORDER_LOG", &log);
    if let Some((at, errno)) = fail {
        child.env("RECORDER_FAIL_AT", at.to_string());
        child.env("RECORDER_ERRNO", errno.to_string());
    }
    let ended = child.output().unwrap();
    assert!(
        ended.status.success(),
        "{fail:?}: {}\n{}",
        String::from_utf8_lossy(&ended.stdout),
        String::from_utf8_lossy(&ended.stderr)
    );
    let operations = parse(&fs::read(&log).unwrap(), &folder);
    Recording { operations }
}

/// The folder of the store in the child process.
pub(super) fn recorded_folder() -> PathBuf {
    let folder: OsString = std::env::var_os("RECORDER_FOLDER").unwrap();
    PathBuf::from(folder)
}

fn parse(mut log: &[u8], folder: &Path) -> Vec<Operation> {
    let mut operations = Vec::new();
    let prefix = folder.to_str().unwrap();
    while !log.is_empty() {
        let mut take = |bytes: usize| {
            let (head, rest) = log.split_at(bytes);
            log = rest;
            head.to_vec()
        };
        let mut number = || usize::try_from(u64::from_ne_bytes(take(8).try_into().unwrap())).unwrap();
        let [kind, offset, path, data] = [number(), number(), number(), number()];
        let below = |path: Vec<u8>| {
            let path = String::from_utf8(path).unwrap();
            String::from(path.strip_prefix(prefix).unwrap().trim_start_matches('/'))
        };
        let (path, mut data) = (below(take(path)), take(data));
        let kind = Kind::ALL[kind - 1];
        if kind == Kind::Rename {
            data = below(data).into_bytes();
        }
        // A file that is open after its name was removed is not found again.
        if !path.ends_with(" (deleted)") {
            operations.push(Operation {
                kind,
                offset,
                path,
                data,
            });
        }
    }
    operations
}
