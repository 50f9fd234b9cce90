//! Which version of HTTP a connection speaks, found out before it is served. A connection that is known to speak
//! HTTP/1 is given half of the room that one of either kind takes, because nothing has to be read ahead of it.

use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::limits;
use crate::settings::Settings;

/// How HTTP/2 begins; no method of HTTP/1 does.
const PREFACE: &[u8] = b"PRI";

pub(super) struct Protocols {
    any: Builder<TokioExecutor>,
    first: Builder<TokioExecutor>,
    second: Builder<TokioExecutor>,
}

impl Protocols {
    pub(super) fn new(settings: &Settings) -> Self {
        let any = builder(settings);
        Self {
            first: any.clone().http1_only(),
            second: any.clone().http2_only(),
            any,
        }
    }

    /// By what the client says first; `None` if it says nothing in time. All of it is still there to be read.
    pub(super) async fn of_plain(
        &self,
        stream: &TcpStream,
        opening: Duration,
    ) -> Option<Builder<TokioExecutor>> {
        let mut said = [0; PREFACE.len()];
        let count = timeout(opening, stream.peek(&mut said)).await.ok()?.ok()?;
        let builder = match said.get(..count) {
            Some(said) if !PREFACE.starts_with(said) => &self.first,
            _ => &self.any,
        };
        Some(builder.clone())
    }

    /// By what was agreed on when the connection was made.
    pub(super) fn of_encrypted(&self, agreed: Option<&[u8]>) -> Builder<TokioExecutor> {
        let builder = match agreed {
            Some(b"h2") => &self.second,
            Some(b"http/1.1") => &self.first,
            _ => &self.any,
        };
        builder.clone()
    }
}

fn builder(settings: &Settings) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
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
