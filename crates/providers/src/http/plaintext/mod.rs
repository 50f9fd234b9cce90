//! HTTP/1.1 over connections without TLS, for local servers. There is no task, no channel and no buffer
//! between the call and its socket; proxies, TLS and everything else use the other client.

mod body;
mod pool;
mod question;
mod reading;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use reqwest::header::{CONNECTION, HeaderMap};
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::time::timeout;

pub(super) use self::body::Body;
use self::pool::Pool;
pub(super) use self::question::Address;
use self::reading::{Head, Reading};

/// What went wrong, by how far the call had come.
#[derive(Debug, thiserror::Error)]
pub(super) enum Broken {
    #[error("{0}")]
    Resolve(#[source] io::Error),
    #[error("{0}")]
    Connect(#[source] io::Error),
    #[error("no connection after {} ms", .0.as_millis())]
    Slow(Duration),
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("the connection was closed before the answer was complete")]
    Cut,
    #[error("{0}")]
    Protocol(#[from] ureq_proto::Error),
    #[error("the head of the answer is too large")]
    LargeHead,
}

/// Connections that are kept for the next question.
#[derive(Clone, Debug, Default)]
pub(super) struct Plain {
    pool: Arc<Pool>,
    connect_timeout: Option<Duration>,
}

impl Plain {
    pub(super) fn new(connect_timeout: Option<Duration>) -> Self {
        Self {
            pool: Arc::default(),
            connect_timeout,
        }
    }

    /// Asks, and waits for the head of the answer.
    pub(super) async fn post(
        &self,
        address: &Address,
        headers: &HeaderMap,
        content: &Bytes,
    ) -> Result<(Head, Body), Broken> {
        let question = address.question(headers, content)?;
        let socket = match self.pool.take(&address.host) {
            Some(socket) => socket,
            // Boxed: rare and large future.
            None => self.connect(&address.host).boxed().await?,
        };
        let early = send(&socket, &question).await?;
        let mut body = Body::new(socket, Reading::new()?, address.host.clone(), self.pool.clone());
        drop(question);
        // The connection is not reused if the caller requests that it is closed.
        if early || headers.contains_key(CONNECTION) {
            body.never_again();
        }
        Ok((body.head().await?, body))
    }

    async fn connect(&self, host: &str) -> Result<TcpStream, Broken> {
        let connecting = async {
            let addresses = tokio::net::lookup_host(host).await.map_err(Broken::Resolve)?;
            let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
            for address in addresses {
                match TcpStream::connect(address).await {
                    Ok(socket) => return Ok(socket),
                    Err(error) => last = error,
                }
            }
            Err(Broken::Connect(last))
        };
        let socket = match self.connect_timeout {
            Some(patience) => timeout(patience, connecting)
                .await
                .map_err(|_| Broken::Slow(patience))??,
            None => connecting.await?,
        };
        // A question is one write, and an answer is waited for: nothing is gained by holding either back.
        socket.set_nodelay(true).map_err(Broken::Connect)?;
        Ok(socket)
    }
}

/// Writes the request, unless the server responds earlier: a server may reject a request without reading it
/// completely. Returns whether it responded early.
async fn send(socket: &TcpStream, mut question: &[u8]) -> Result<bool, Broken> {
    while !question.is_empty() {
        match socket.try_write(question) {
            Ok(count) => question = question.get(count..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let ready = socket.ready(Interest::READABLE | Interest::WRITABLE).await?;
                if ready.is_readable() && !ready.is_writable() {
                    return Ok(true);
                }
            }
            // The response may contain the reason.
            Err(_) => return Ok(true),
        }
    }
    Ok(false)
}
