//! One process and its descendants: spawned in its own process group, read within limits, and killed when
//! the call ends or is dropped. Its folder is removed afterwards.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use ir::{Error, ErrorKind, Phase};
use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::time::{Instant, sleep, sleep_until};

use super::options::MemoryLimit;
use crate::limits::{COMMAND_LINGER, COMMAND_READ_BYTES, COMMAND_STDERR_BYTES_MAX, COMMAND_WATCH};

/// Specification of a process.
#[derive(Debug)]
pub(super) struct ProcessSpec {
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<OsString>,
    pub(super) environment: Vec<(OsString, OsString)>,
    pub(super) folder: TempDir,
    /// File for standard input.
    pub(super) stdin: Option<File>,
    pub(super) timeout: Duration,
    pub(super) output_bytes_max: u64,
    /// The file that it writes its output to.
    pub(super) output: Option<PathBuf>,
    pub(super) memory: Option<MemoryLimit>,
}

#[derive(Debug)]
pub(super) struct RunningProcess {
    name: String,
    group: Option<Pid>,
    child: Option<Child>,
    stdout: ChildStdout,
    stderr: Option<ChildStderr>,
    /// The exit status, once it has ended.
    status: Option<ExitStatus>,
    /// The end of its standard error, for the log.
    complaint: BytesMut,
    folder: Option<TempDir>,
    output: Option<PathBuf>,
    deadline: Instant,
    timeout: Duration,
    left_bytes: u64,
    output_bytes_max: u64,
    /// Whether it has written any output.
    began: bool,
}

impl RunningProcess {
    pub(super) fn start(plan: ProcessSpec) -> Result<Self, Error> {
        let name = plan.program.file_name().unwrap_or_default();
        let name = name.to_string_lossy().into_owned();
        // A limit set from outside would be late for child processes that start immediately, so a launcher
        // sets it and then executes the program.
        let mut command = match &plan.memory {
            Some(memory) => {
                let mut launcher = Command::new(&memory.launcher);
                launcher
                    .arg(format!("--as={}", memory.bytes))
                    .arg("--")
                    .arg(&plan.program);
                launcher
            }
            None => Command::new(&plan.program),
        };
        command
            .args(&plan.arguments)
            .env_clear()
            .envs(plan.environment)
            .current_dir(plan.folder.path())
            .stdin(plan.stdin.map_or_else(Stdio::null, Stdio::from))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        let failed = |why: String| {
            let message = format!("the program `{name}` cannot be started: {why}");
            Error::new(ErrorKind::NotEnabled, Phase::BeforeSend, message)
        };
        let mut child = command
            .spawn()
            .map_err(|error| failed(error.kind().to_string()))?;
        let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let stdout = stdout.ok_or_else(|| failed(String::from("its output cannot be read")))?;
        Ok(Self {
            name,
            group,
            child: Some(child),
            stdout,
            stderr,
            status: None,
            complaint: BytesMut::new(),
            folder: Some(plan.folder),
            output: plan.output,
            deadline: Instant::now() + plan.timeout,
            timeout: plan.timeout,
            left_bytes: plan.output_bytes_max,
            output_bytes_max: plan.output_bytes_max,
            began: false,
        })
    }

    /// The next piece of standard output; `None` when the program has ended successfully.
    pub(super) async fn read(&mut self) -> Result<Option<Bytes>, Error> {
        let mut piece = BytesMut::with_capacity(COMMAND_READ_BYTES);
        let mut open = true;
        loop {
            let Some(child) = &mut self.child else {
                return Ok(None);
            };
            if let (false, None, Some(status)) = (open, &self.stderr, self.status) {
                return self.ended(status).map(|()| None);
            }
            tokio::select! {
                biased;
                () = sleep_until(self.deadline) => match self.status {
                    // It has exited, but a process outside of its group keeps its output open.
                    Some(status) => return self.ended(status).map(|()| None),
                    None => return Err(self.overdue()),
                },
                read = self.stdout.read_buf(&mut piece), if open => match read {
                    Ok(0) | Err(_) => open = false,
                    Ok(_) => return self.take(piece.freeze()).map(Some),
                },
                () = sleep(COMMAND_WATCH), if self.output.is_some() => {
                    if self.has_written_too_much() {
                        self.kill();
                        return Err(self.too_much());
                    }
                }
                () = listen(&mut self.stderr, &mut self.complaint), if self.stderr.is_some() => {}
                status = child.wait(), if self.status.is_none() => {
                    self.status = status.ok().or_else(|| Some(ExitStatus::default()));
                    // Kills remaining processes of the group, which keep its output open.
                    self.kill();
                    self.deadline = self.deadline.min(Instant::now() + COMMAND_LINGER);
                }
            }
        }
    }

    fn take(&mut self, piece: Bytes) -> Result<Bytes, Error> {
        self.began = true;
        let bytes = u64::try_from(piece.len()).unwrap_or(u64::MAX);
        match self.left_bytes.checked_sub(bytes) {
            Some(left) => {
                self.left_bytes = left;
                Ok(piece)
            }
            None => {
                self.kill();
                Err(self.too_much())
            }
        }
    }

    fn has_written_too_much(&self) -> bool {
        let facts = self
            .output
            .as_ref()
            .and_then(|path| fs::symlink_metadata(path).ok());
        facts.is_some_and(|facts| facts.len() > self.output_bytes_max)
    }

    pub(super) fn too_much(&self) -> Error {
        let message = format!(
            "the program `{}` wrote more than {} bytes",
            self.name, self.output_bytes_max
        );
        Error::invalid_response(self.phase(), message)
    }

    fn ended(&mut self, status: ExitStatus) -> Result<(), Error> {
        self.child = None;
        if status.success() {
            return Ok(());
        }
        let how = match status.code() {
            Some(code) => format!("exited with status {code}"),
            None => String::from("was killed"),
        };
        // Program output is logged for the operator and not returned to callers.
        let stderr = String::from_utf8_lossy(&self.complaint);
        let stderr = stderr.lines().rev().find(|line| !line.trim().is_empty());
        tracing::warn!(program = %self.name, exit = %how, stderr = stderr.unwrap_or_default(), "program failed");
        let message = format!("the program `{}` {how}", self.name);
        Err(Error::new(ErrorKind::Upstream, self.phase(), message))
    }

    fn overdue(&self) -> Error {
        self.kill();
        let message = format!(
            "the program `{}` did not finish within {} ms",
            self.name,
            self.timeout.as_millis()
        );
        Error::new(ErrorKind::Timeout, self.phase(), message)
    }

    fn phase(&self) -> Phase {
        match self.began {
            true => Phase::MidStream,
            false => Phase::BeforeFirstByte,
        }
    }

    fn kill(&self) {
        if let Some(group) = self.group {
            // The group may be empty.
            kill_process_group(group, Signal::KILL).ok();
        }
    }
}

impl Drop for RunningProcess {
    fn drop(&mut self) {
        self.kill();
        let (child, folder) = (self.child.take(), self.folder.take());
        // A killed process may still write, so its folder is removed after it has exited. Without a runtime,
        // both are dropped immediately.
        if let (Some(mut child), Ok(runtime)) = (child, tokio::runtime::Handle::try_current()) {
            runtime.spawn(async move {
                child.wait().await.ok();
                drop(folder);
            });
        }
    }
}

/// Reads standard error and retains the end of it.
async fn listen(stderr: &mut Option<ChildStderr>, kept: &mut BytesMut) {
    let Some(pipe) = stderr else { return };
    match pipe.read_buf(kept).await {
        Ok(0) | Err(_) => *stderr = None,
        Ok(_) => {
            let surplus = kept.len().saturating_sub(COMMAND_STDERR_BYTES_MAX);
            drop(kept.split_to(surplus));
        }
    }
}
