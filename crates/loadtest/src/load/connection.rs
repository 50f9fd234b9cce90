//! One connection that sends requests in a loop.

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use tokio::time::{Duration, Instant};

use super::disconnect::{connect, leave};
use super::endpoint::Endpoint;
use super::schedule::Schedule;
use super::tally::Tally;
use super::{Mode, Window};
use crate::response::TOKEN;

/// Bytes retained from the previous read, so that a marker split between two reads is found.
const TAIL: usize = 64;
/// Header with the session id of the run.
const SESSION: &str = "x-cognitive-session";
/// The middle of a run of 64 tokens.
const MIDDLE: &str = "32";
/// Delay before connecting again to an unreachable server.
const PAUSE: Duration = Duration::from_millis(20);

#[derive(Clone, Debug)]
pub(crate) struct EncodedRequest {
    pub(crate) host: String,
    pub(crate) path: String,
    pub(crate) body: Bytes,
    pub(crate) key: Option<String>,
    pub(crate) mode: Mode,
    /// What is disconnected, in the mode that measures disconnects.
    pub(crate) endpoint: Endpoint,
    pub(crate) idempotent: bool,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) upstream: Option<String>,
}

impl EncodedRequest {
    pub(crate) fn request(&self, session: Option<&str>) -> Result<Request<Full<Bytes>>> {
        let (accept, kind) = match self.mode {
            Mode::Disconnect => (self.endpoint.accept(), self.endpoint.content_type()),
            mode if mode.streams() => ("text/event-stream", String::from("application/json")),
            _ => ("application/json", String::from("application/json")),
        };
        let (request, body) = match session {
            Some(session) => {
                let events = Request::get(format!("/v1/runs/{session}/events"));
                (events.header("last-event-id", MIDDLE), Bytes::new())
            }
            None => {
                let asked = Request::post(self.path.as_str());
                (asked.header("content-type", kind), self.body.clone())
            }
        };
        let mut request = request
            .header("host", self.host.as_str())
            .header("accept", accept);
        if self.idempotent && session.is_none() {
            request = request.header("idempotency-key", new_idempotency_key());
        }
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        if let Some(key) = &self.key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        Ok(request.body(Full::new(body))?)
    }
}

/// Unique among all load generators on this machine.
fn new_idempotency_key() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("load-{}-{count}", std::process::id())
}

pub(crate) struct Connection {
    question: EncodedRequest,
    /// The run that is resumed.
    session: Option<String>,
    sender: Option<SendRequest<Full<Bytes>>>,
    schedule: Option<Schedule>,
    tally: Tally,
}

impl Connection {
    pub(crate) fn new(question: EncodedRequest, schedule: Option<Schedule>) -> Self {
        Self {
            question,
            session: None,
            sender: None,
            schedule,
            tally: Tally::default(),
        }
    }

    pub(crate) async fn ask(mut self, window: Window) -> Tally {
        loop {
            let began = match &mut self.schedule {
                Some(schedule) => schedule.wait().await,
                None => Instant::now(),
            };
            if began >= window.until && !window.once {
                return self.tally;
            }
            let counts = began >= window.from || window.once;
            let mut tally = Tally::default();
            if let Err(error) = self.exchange(&mut tally, began).await {
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

    async fn exchange(&mut self, tally: &mut Tally, began: Instant) -> Result<()> {
        let mode = self.question.mode;
        if mode == Mode::Disconnect {
            tally.whole_us.push(leave(&self.question).await?);
            tally.good += 1;
            return Ok(());
        }
        let request = self.question.request(self.session.as_deref())?;
        let sender = self.connected().await?;
        sender.ready().await?;
        let response = sender.send_request(request).await?;
        let status = response.status();
        let session = response.headers().get(SESSION);
        let session = session.and_then(|name| name.to_str().ok()).map(String::from);
        let body = response.into_body();
        if !status.is_success() {
            let said = body.collect().await?.to_bytes();
            bail!("{status}: {}", String::from_utf8_lossy(&said));
        }
        if mode == Mode::Resume && self.session.is_none() {
            self.session = Some(session.context("the response has no session header")?);
            // Only resuming is measured, not the run itself.
            read_stream(body, mode, began, &mut Tally::default()).await?;
            return Ok(());
        } else if mode.streams() {
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
            self.sender = Some(connect(&self.question.host).await?.0);
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
        bail!("the stream ended without its terminator");
    }
    Ok(())
}

pub(super) fn count_tokens(data: &[u8]) -> u64 {
    memchr::memmem::find_iter(data, TOKEN.as_bytes()).count() as u64
}

fn since_us(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX)
}
