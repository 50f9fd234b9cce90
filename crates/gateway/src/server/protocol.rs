//! HTTP version of a connection, detected before it is served. A connection known to use HTTP/1 needs half
//! the memory: no read-ahead buffer and no state of the other version.

use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::limits;
use crate::settings::Settings;

/// Start of the HTTP/2 preface; no HTTP/1 method starts with it.
const PREFACE: &[u8] = b"PRI";

/// HTTP server of a connection.
pub(super) enum Protocol {
    /// HTTP/1.
    Http1(http1::Builder),
    /// Either, detected while reading.
    Auto(auto::Builder<TokioExecutor>),
}

pub(super) struct Protocols {
    first: http1::Builder,
    any: auto::Builder<TokioExecutor>,
}

impl Protocols {
    pub(super) fn new(settings: &Settings) -> Self {
        let mut first = http1::Builder::new();
        first
            .timer(TokioTimer::new())
            .header_read_timeout(settings.header_read)
            .max_buf_size(limits::HEADER_BYTES_MAX);
        Self {
            first,
            any: any(settings),
        }
    }

    /// Detects the version from the first bytes, without consuming them; `None` after the timeout.
    pub(super) async fn detect_plaintext(&self, stream: &TcpStream, opening: Duration) -> Option<Protocol> {
        let mut first = [0; PREFACE.len()];
        let count = timeout(opening, stream.peek(&mut first)).await.ok()?.ok()?;
        Some(match first.get(..count) {
            Some(first) if !PREFACE.starts_with(first) => Protocol::Http1(self.first.clone()),
            _ => Protocol::Auto(self.any.clone()),
        })
    }

    /// The version negotiated by ALPN.
    pub(super) fn negotiated(&self, agreed: Option<&[u8]>) -> Protocol {
        match agreed {
            Some(b"http/1.1") => Protocol::Http1(self.first.clone()),
            _ => Protocol::Auto(self.any.clone()),
        }
    }
}

fn any(settings: &Settings) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(settings.header_read)
        .max_buf_size(limits::HEADER_BYTES_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .enable_connect_protocol()
        .max_concurrent_streams(limits::REQUESTS_PER_CONNECTION_MAX)
        // Bodies that wait to be read never use up the window of the connection, which would stop the others.
        .initial_stream_window_size(limits::BODY_WINDOW_BYTES)
        .initial_connection_window_size(limits::BODY_WINDOW_BYTES * limits::REQUESTS_PER_CONNECTION_MAX)
        .max_header_list_size(u32::try_from(limits::HEADER_BYTES_MAX).unwrap_or(u32::MAX))
        .max_send_buf_size(limits::SEND_BUFFER_BYTES_MAX)
        .keep_alive_interval(settings.header_read)
        .keep_alive_timeout(settings.header_read);
    builder
}
