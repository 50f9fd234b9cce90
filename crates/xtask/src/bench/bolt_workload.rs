//! The workload that is profiled for the code layout of the released binary: typical server requests and a
//! few commands. Speed is not measured.

use std::path::Path;

use anyhow::Result;

use super::gateway::{CHAT, CHAT_STREAM, EXECUTE, MODEL, WHOLE_CHAT};
use super::process::commands;
use super::setup::{Bench, Folder, measured};
use crate::shell::run;

/// Per kind of request, so that none dominates the profile.
const SECONDS: &str = "2";

/// Runs the workload with an instrumented binary.
pub(crate) fn train(cogn: &Path) -> Result<()> {
    for mut command in commands(cogn) {
        run(&mut command)?;
    }
    measured(cogn, serve)
}

fn serve(bench: &Bench<'_>) -> Result<()> {
    let folder = Folder::new(bench.upstream.address(), MODEL)?;
    let server = folder.serve(bench.cogn)?;
    for connections in ["32", "1"] {
        let how = ["--seconds", SECONDS, "--connections", connections];
        for mode in ["unary", "execute", "resume"] {
            bench.load(&server, EXECUTE, &[&["--mode", mode], &how[..]].concat())?;
        }
        for question in [WHOLE_CHAT, CHAT_STREAM] {
            bench.load(&server, CHAT, &[&question[..], &how].concat())?;
        }
    }
    server.stop()
}
