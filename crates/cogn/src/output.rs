//! All output of commands: results to stdout, messages to stderr, colours only on a terminal. A broken pipe
//! ends the program without an error.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::sync::Mutex;

use anstream::{AutoStream, ColorChoice};
use owo_colors::OwoColorize;
use serde::Serialize;

use crate::cli::{Color, Global};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    choice: ColorChoice,
    pub(crate) json: bool,
    pub(crate) quiet: bool,
}

/// An error with a hint how to fix it.
#[derive(Debug)]
pub(crate) struct HintedError {
    message: String,
    hint: String,
}

/// An error with a message and a hint.
pub(crate) fn hinted(message: impl Into<String>, hint: impl Into<String>) -> anyhow::Error {
    anyhow::Error::new(HintedError {
        message: message.into(),
        hint: hint.into(),
    })
}

/// A warning about the configuration or the flags, on stderr; each text is printed once per process, because a
/// command may read its configuration several times.
pub(crate) fn warn_once(text: &str) {
    static PRINTED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let is_new = PRINTED
        .lock()
        .is_ok_and(|mut printed| printed.insert(String::from(text)));
    if is_new {
        // A closed stderr cannot be reported.
        writeln!(anstream::stderr(), "{} {text}", "warning:".yellow().bold()).ok();
    }
}

impl std::fmt::Display for HintedError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for HintedError {}

impl Output {
    pub(crate) fn new(global: &Global) -> Self {
        let choice = match global.color {
            Color::Auto => ColorChoice::Auto,
            Color::Always => ColorChoice::Always,
            Color::Never => ColorChoice::Never,
        };
        Self {
            choice,
            json: global.json,
            quiet: global.quiet,
        }
    }

    /// The stream for results.
    pub(crate) fn stdout(&self) -> AutoStream<io::StdoutLock<'static>> {
        AutoStream::new(
            io::stdout().lock(),
            self.choice_for(AutoStream::choice(&io::stdout())),
        )
    }

    /// The stream for progress, warnings and errors.
    pub(crate) fn stderr(&self) -> AutoStream<io::StderrLock<'static>> {
        AutoStream::new(
            io::stderr().lock(),
            self.choice_for(AutoStream::choice(&io::stderr())),
        )
    }

    /// `auto` depends on the stream (terminal, `NO_COLOR`, `CLICOLOR_FORCE`); the flag takes precedence.
    fn choice_for(&self, detected: ColorChoice) -> ColorChoice {
        match self.choice {
            ColorChoice::Auto => detected,
            choice => choice,
        }
    }

    /// One line of a result.
    pub(crate) fn line(&self, text: impl AsRef<str>) -> io::Result<()> {
        writeln!(self.stdout(), "{}", text.as_ref())
    }

    /// A result as indented JSON.
    pub(crate) fn json<T: Serialize + ?Sized>(&self, value: &T) -> io::Result<()> {
        let mut stream = self.stdout();
        let text = serde_json::to_string_pretty(value).map_err(io::Error::other)?;
        writeln!(stream, "{text}")
    }

    /// A note for the user; omitted with `-q`.
    pub(crate) fn note(&self, text: impl AsRef<str>) {
        if !self.quiet {
            // Errors of stderr cannot be reported.
            writeln!(self.stderr(), "{}", text.as_ref()).ok();
        }
    }

    /// Prints an error with the chain of causes and the hint, if there is one.
    pub(crate) fn error(&self, error: &anyhow::Error) {
        let mut stream = self.stderr();
        let mut text = format!("{} {error}\n", "error:".red().bold());
        for cause in error.chain().skip(1) {
            text.push_str(&format!("  {} {cause}\n", "caused by:".dimmed()));
        }
        if let Some(hinted) = error.downcast_ref::<HintedError>() {
            text.push_str(&format!("{} {}\n", "hint:".cyan().bold(), hinted.hint));
        }
        stream.write_all(text.as_bytes()).ok();
    }
}

/// Whether the reader has closed the pipe: `cogn list | head` is not a failure.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let cause = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>());
    cause.is_some_and(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}
