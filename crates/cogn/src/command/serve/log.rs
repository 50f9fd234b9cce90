//! The log of the server: one line per event on stderr, as text or JSON. The type of secrets prevents
//! printing them; secret values inside other texts, such as vendors' error messages, are redacted here.

use std::io::{self, Write};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::config::{LogFormat, redact};

pub(crate) fn start(format: LogFormat, quiet: bool) {
    let level = if quiet { "warn" } else { "info" };
    // The MCP library logs every message and disconnect at levels that are enabled here.
    let log = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(format!("{level},rmcp=off")))
        .with_writer(Redacting);
    match format {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().flatten_event(true).init(),
    }
}

/// Each write is one complete line, so no secret is split over two writes.
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
