//! The one binary. This file starts it; `cli` says what can be asked, `command` holds one file per
//! answer, `modules` finds module folders on disk. Business logic lives in the libraries.

mod server_setup;
mod command_engine;
mod atomic_file;
mod backends;
mod cli;
mod clock;
mod command;
mod config;
mod conformance;
mod graph;
mod duration;
mod exit;
mod gates;
mod markdown;
mod media;
mod models;
mod modules;
mod near;
mod output;
mod error_pages;
mod human_output;
mod render;
mod wiring;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::Cli;
use crate::output::Output;

// Calls are many small pieces, handed out and given back by several threads.
#[cfg(not(target_env = "msvc"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let output = Output::new(&cli.global);
    match command::run(cli, &output) {
        Ok(exit) => exit.into(),
        Err(error) if output::is_broken_pipe(&error) => exit::Exit::Success.into(),
        Err(error) => {
            output.error(&error);
            exit::Exit::Error.into()
        }
    }
}
