//! One connection that asks again and again.

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::{Duration, Instant};

use super::tally::Tally;
use super::{Mode, Window};
use crate::reply::TOKEN;

/// Kept of what was read, so that a mark that two reads share is found.
const TAIL: usize = 64;
/// Before the next try at a server that is not there.
const PAUSE: Duration = Duration::from_millis(20);

#[derive(Clone, Debug)]
pub(crate) struct Question {
    pub(crate) host: String,
    pub(crate) path: String,
    pub(crate) body: Bytes,
    pub(crate) key: String,
    pub(crate) mode: Mode,
}

pub(crate) struct Connection {
    question: Question,
    sender: Option<SendRequest<Full<Bytes>>>,
    tally: Tally,
}

impl Connection {
    pub(crate) fn new(question: Question) -> Self {
        Self {
            question,
            sender: None,
            tally: Tally::default(),
        }
    }

    pub(crate) async fn ask(mut self, window: Window) -> Tally {
        loop {
            let now = Instant::now();
            if now >= window.until && !window.once {
                return self.tally;
            }
            let counts = now >= window.from || window.once;
            let mut tally = Tally::default();
            if let Err(error) = self.exchange(&mut tally).await {
                self.sender = None;
                tally.fail(|| format!("{error:#}"));
                tokio::time::sleep(PAUSE).await;
            }
            if counts {
                self.tally.add(tally);
            }
            if window.once {
                return self.tally;
            }
        }
    }

    async fn exchange(&mut self, tally: &mut Tally) -> Result<()> {
        let question = &self.question;
        let accept = match question.mode {
            Mode::Execute | Mode::Stream => "text/event-stream",
            Mode::Chat | Mode::Call => "application/json",
        };
        let request = Request::post(question.path.as_str())
            .header("host", question.host.as_str())
            .header("content-type", "application/json")
            .header("authorization", format!("Bearer {}", question.key))
            .header("accept", accept)
            .body(Full::new(question.body.clone()))?;
        let mode = question.mode;
        let sender = self.connected().await?;
        sender.ready().await?;
        let began = Instant::now();
        let response = sender.send_request(request).await?;
        let status = response.status();
        let body = response.into_body();
        if !status.is_success() {
            let said = body.collect().await?.to_bytes();
            bail!("{status}: {}", String::from_utf8_lossy(&said));
        }
        if mode.streams() {
            read_stream(body, mode, began, tally).await?;
        } else {
            let said = body.collect().await?.to_bytes();
            tally.tokens += count_tokens(&said);
        }
        tally.whole_us.push(since_us(began));
        tally.good += 1;
        Ok(())
    }

    async fn connected(&mut self) -> Result<&mut SendRequest<Full<Bytes>>> {
        if self.sender.as_ref().is_none_or(SendRequest::is_closed) {
            let stream = TcpStream::connect(&self.question.host)
                .await
                .context("cannot connect")?;
            stream.set_nodelay(true)?;
            let (sender, connection) = handshake(TokioIo::new(stream)).await?;
            tokio::spawn(connection);
            self.sender = Some(sender);
        }
        self.sender.as_mut().context("no connection")
    }
}

async fn read_stream(mut body: Incoming, mode: Mode, began: Instant, tally: &mut Tally) -> Result<()> {
    let mut last = None;
    let mut tail: Vec<u8> = Vec::new();
    let mut ended = false;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        tally.reads += 1;
        tail.extend_from_slice(&data);
        ended |= memchr::memmem::find(&tail, mode.end()).is_some();
        let tokens = count_tokens(&data);
        if tokens > 0 {
            match last {
                None => tally.first_us.push(since_us(began)),
                Some(last) => tally.gap_us.push(since_us(last)),
            }
            last = Some(Instant::now());
        }
        tally.tokens += tokens;
        let kept = tail.len().saturating_sub(TAIL);
        tail.drain(..kept);
    }
    if !ended {
        bail!("a stream without its end");
    }
    Ok(())
}

fn count_tokens(data: &[u8]) -> u64 {
    memchr::memmem::find_iter(data, TOKEN.as_bytes()).count() as u64
}

fn since_us(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX)
}
