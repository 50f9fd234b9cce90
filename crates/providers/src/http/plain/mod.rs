//! Questions over connections without TLS, as servers on one's own machines take them. Nothing stands between the
//! call and its socket: no task of its own, no channel, and no buffer while a server is silent. It speaks HTTP/1.1
//! alone; proxies, TLS and everything else go the other way, and this knows nothing of dialects.

mod body;
mod pool;
mod reading;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use reqwest::Method;
use reqwest::header::{ACCEPT, CONTENT_LENGTH, HeaderMap, HeaderValue, USER_AGENT};
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::time::timeout;
use ureq_proto::client::{Call, SendRequestResult, state};
use ureq_proto::http::{Request, Uri};

pub(super) use self::body::Body;
use self::pool::Pool;
use self::reading::{Head, Reading};
use super::client::AGENT;
use crate::limits::REQUEST_HEAD_BYTES_MAX;

/// Room for the head of a question, in which nearly all find place.
const HEAD_BYTES: usize = 512;

/// Where to ask, in the form in which it is asked.
#[derive(Clone, Debug)]
pub(super) struct Address {
    uri: Uri,
    /// Host and port, as they are resolved; connections are kept under this name.
    host: Arc<str>,
}

impl Address {
    /// `None`: it is not one that is reached like this.
    pub(super) fn of(url: &str) -> Option<Self> {
        let uri: Uri = url.parse().ok()?;
        let authority = uri.authority()?;
        // Who writes a name and a password into an address gets them sent, which is somebody else's work.
        let plain = uri.scheme_str() == Some("http") && !authority.as_str().contains('@');
        let host = authority.host();
        if !plain || host.is_empty() {
            return None;
        }
        let host = format!("{host}:{}", authority.port_u16().unwrap_or(80)).into();
        Some(Self { uri, host })
    }
}

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
        headers: HeaderMap,
        content: &Bytes,
    ) -> Result<(Head, Body), Broken> {
        let (question, call) = written(address, headers, content)?;
        let socket = match self.pool.take(&address.host) {
            Some(socket) => socket,
            // Rare, so it has a box of its own.
            None => self.connect(&address.host).boxed().await?,
        };
        let early = send(&socket, &question).await?;
        let mut body = Body::new(
            socket,
            Reading::new(call),
            address.host.clone(),
            self.pool.clone(),
        );
        if early {
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

/// The question as it goes out, and what waits for its answer.
fn written(
    address: &Address,
    headers: HeaderMap,
    content: &Bytes,
) -> Result<(Vec<u8>, Call<state::RecvResponse>), Broken> {
    let mut request = Request::new(());
    *request.method_mut() = Method::POST;
    *request.uri_mut() = address.uri.clone();
    *request.headers_mut() = headers;
    let headers = request.headers_mut();
    headers.insert(CONTENT_LENGTH, HeaderValue::from(content.len()));
    headers
        .entry(USER_AGENT)
        .or_insert(HeaderValue::from_static(AGENT));
    headers.entry(ACCEPT).or_insert(HeaderValue::from_static("*/*"));
    let mut call = Call::new(request)?.proceed();
    let mut head = vec![0; HEAD_BYTES];
    let mut end = 0;
    while !call.can_proceed() {
        match call.write(head.get_mut(end..).unwrap_or_default()) {
            Ok(count) => end += count,
            Err(ureq_proto::Error::OutputOverflow) => {}
            Err(error) => return Err(error.into()),
        }
        // A line that is longer than what was left: a long key, say.
        if !call.can_proceed() {
            if end > REQUEST_HEAD_BYTES_MAX {
                return Err(Broken::LargeHead);
            }
            head.resize(head.len() * 2, 0);
        }
    }
    let text = [head.get(..end).unwrap_or_default(), content].concat();
    let call = match call.proceed()? {
        Some(SendRequestResult::SendBody(mut call)) => {
            call.consume_direct_write(content.len())?;
            call.proceed()
        }
        Some(SendRequestResult::RecvResponse(call)) => Some(call),
        // Nobody here asks for leave to go on.
        Some(SendRequestResult::Await100(_)) | None => None,
    };
    Ok((text, call.ok_or(Broken::Cut)?))
}

/// Writes all of it, unless the server says something before that: whoever refuses a question need not have read
/// it to its end. Returns whether it was so.
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
            // It may have said why.
            Err(_) => return Ok(true),
        }
    }
    Ok(false)
}
