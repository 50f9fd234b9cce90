//! Sends a request, disconnects, and measures how long the upstream continues. The clocks of both processes
//! are of the same machine.

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::Duration;

use super::connection::{EncodedRequest, count_tokens};
use crate::process::now_us;

/// Timeout for the upstream to receive the request, or to detect the disconnect.
const LEFT_US_MAX: u64 = 10_000_000;
/// Polling interval.
const PAUSE: Duration = Duration::from_millis(5);

/// Microseconds from the disconnect to its detection by the upstream.
pub(super) async fn leave(question: &EncodedRequest) -> Result<u64> {
    let upstream = question.upstream.as_deref();
    let upstream = upstream.context("--upstream is required")?;
    let before = UpstreamStats::at(upstream).await?;
    let (mut sender, line) = connect(&question.host).await?;
    // The connection is dropped on every return path, which is the disconnect.
    let line = ClientConnection(line);
    let asked = sender.send_request(question.request(None)?);
    if question.endpoint.streams() {
        let answer = asked.await?;
        let status = answer.status();
        let mut body = answer.into_body();
        if !status.is_success() {
            let said = body.collect().await?.to_bytes();
            bail!("{status}: {}", String::from_utf8_lossy(&said));
        }
        let mut tokens = 0;
        while tokens == 0 {
            let frame = body.frame().await.context("a stream without a token")??;
            tokens = count_tokens(&frame.into_data().unwrap_or_default());
        }
        return line.left(upstream, before).await;
    }
    tokio::select! {
        answer = asked => {
            let answer = answer?;
            let status = answer.status();
            // The first frame is sufficient, and the body may be endless.
            let said = answer.into_body().frame().await.transpose()?;
            let said = said.and_then(|frame| frame.into_data().ok()).unwrap_or_default();
            bail!("answered before the disconnect, with {status}: {}", String::from_utf8_lossy(&said));
        }
        reached = reached(upstream, before) => reached?,
    }
    line.left(upstream, before).await
}

/// Waits until the upstream has received the request.
async fn reached(upstream: &str, before: UpstreamStats) -> Result<()> {
    let began_us = now_us();
    while UpstreamStats::at(upstream).await?.requests == before.requests {
        if now_us() > began_us + LEFT_US_MAX {
            bail!("the upstream received no request");
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}

/// The connection; dropping it closes the socket.
struct ClientConnection(JoinHandle<()>);

impl ClientConnection {
    async fn left(self, upstream: &str, before: UpstreamStats) -> Result<u64> {
        let left_us = now_us();
        drop(self);
        loop {
            let seen = UpstreamStats::at(upstream).await?;
            if seen.cancelled > before.cancelled {
                return Ok(seen.last_cancel_us.saturating_sub(left_us));
            }
            if now_us() > left_us + LEFT_US_MAX {
                bail!("the upstream detected no disconnect");
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

impl Drop for ClientConnection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Requests received and disconnects detected by the upstream, with the time of the last one.
#[derive(Clone, Copy)]
struct UpstreamStats {
    requests: u64,
    cancelled: u64,
    last_cancel_us: u64,
}

impl UpstreamStats {
    async fn at(upstream: &str) -> Result<Self> {
        let request = Request::get("/stats").header("host", upstream);
        let request = request.body(Full::new(Bytes::new()))?;
        let (mut sender, line) = connect(upstream).await?;
        let _line = ClientConnection(line);
        let response = sender.send_request(request).await?;
        let stats = response.into_body().collect().await?.to_bytes();
        let stats: Value = serde_json::from_slice(&stats)?;
        let figure = |name: &str| stats[name].as_u64().with_context(|| format!("no {name}"));
        Ok(Self {
            requests: figure("requests")?,
            cancelled: figure("cancelled")?,
            last_cancel_us: figure("last_cancel_us")?,
        })
    }
}

pub(super) async fn connect(host: &str) -> Result<(SendRequest<Full<Bytes>>, JoinHandle<()>)> {
    let stream = TcpStream::connect(host).await.context("cannot connect")?;
    stream.set_nodelay(true)?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await?;
    // A connection error is reported by the request that waits for its response.
    let line = tokio::spawn(async { connection.await.unwrap_or_default() });
    Ok((sender, line))
}
