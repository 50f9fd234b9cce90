//! The binary `cogn`. `cli` defines the command line, `command` contains one file per command, `modules`
//! finds module folders on disk. Business logic belongs to the libraries.

mod atomic_file;
mod backends;
mod cli;
mod clock;
mod command;
mod command_engine;
mod config;
mod conformance;
mod data_folder;
mod duration;
mod error_pages;
mod exit;
mod gates;
mod graph;
mod human_output;
mod markdown;
mod media;
mod models;
mod modules;
mod output;
mod render;
mod server_setup;
mod table;
mod wiring;

use std::io;
use std::panic::resume_unwind;
use std::process::ExitCode;

use clap::Parser;

use crate::cli::Cli;
use crate::output::Output;

// Calls allocate many small objects, which are often freed by another thread.
#[cfg(not(target_env = "msvc"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Runs the command on a thread with the stack that schemas need: a command compiles and applies those of
/// modules in place.
fn main() -> ExitCode {
    let cli = Cli::parse();
    let output = Output::new(&cli.global);
    let ended = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name(String::from("main"))
            .stack_size(engine::limits::SCHEMA_STACK_BYTES)
            .spawn_scoped(scope, || run(cli, &output))?;
        Ok(thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
    });
    ended.unwrap_or_else(|error: io::Error| {
        output.error(&anyhow::Error::new(error).context("cannot start a thread"));
        exit::Exit::Error.into()
    })
}

fn run(cli: Cli, output: &Output) -> ExitCode {
    match command::run(cli, output) {
        Ok(exit) => exit.into(),
        Err(error) if output::is_broken_pipe(&error) => exit::Exit::Success.into(),
        Err(error) => {
            output.error(&error);
            exit::Exit::Error.into()
        }
    }
}
