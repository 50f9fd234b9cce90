//! Which version of HTTP a connection speaks, found out before it is served. One that is known to speak HTTP/1 takes
//! half of the room that one of either kind does: nothing has to be read ahead of it, and nothing is kept for the
//! other version.

use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::limits;
use crate::settings::Settings;

/// How HTTP/2 begins; no method of HTTP/1 does.
const PREFACE: &[u8] = b"PRI";

/// How a connection is served.
pub(super) enum Protocol {
    /// HTTP/1.
    Http1(http1::Builder),
    /// Either; it turns out while it is read.
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

    /// By what the client says first; `None` if it says nothing in time. All of it is still there to be read.
    pub(super) async fn detect_plaintext(&self, stream: &TcpStream, opening: Duration) -> Option<Protocol> {
        let mut said = [0; PREFACE.len()];
        let count = timeout(opening, stream.peek(&mut said)).await.ok()?.ok()?;
        Some(match said.get(..count) {
            Some(said) if !PREFACE.starts_with(said) => Protocol::Http1(self.first.clone()),
            _ => Protocol::Auto(self.any.clone()),
        })
    }

    /// By what was agreed on when the connection was made.
    pub(super) fn from_alpn(&self, agreed: Option<&[u8]>) -> Protocol {
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
        .max_header_list_size(u32::try_from(limits::HEADER_BYTES_MAX).unwrap_or(u32::MAX))
        .max_send_buf_size(limits::SEND_BUFFER_BYTES_MAX)
        .keep_alive_interval(settings.header_read)
        .keep_alive_timeout(settings.header_read);
    builder
}
