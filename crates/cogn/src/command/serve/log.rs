//! The server's log: one line per event on stderr, for people or for machines. Secrets cannot be printed
//! by their type; what still comes by as a value, in the words of someone else, is blotted out here.

use std::io::{self, Write};

use tracing::Level;
use tracing_subscriber::fmt::MakeWriter;

use crate::config::{LogFormat, redact};

pub(super) fn start(format: LogFormat, quiet: bool) {
    let level = if quiet { Level::WARN } else { Level::INFO };
    let log = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(Redacting);
    match format {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().flatten_event(true).init(),
    }
}

/// Gets each line in one piece, so no secret is split over two writes.
struct Redacting;

impl<'a> MakeWriter<'a> for Redacting {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        Self
    }
}

impl Write for Redacting {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        io::stderr().write_all(&redact(line))?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
