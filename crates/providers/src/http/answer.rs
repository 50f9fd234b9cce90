//! From a call to events. Every way in which a call can fail ends in exactly one error event; nothing is
//! gathered beyond one event of the dialect, and dropping the stream hangs up.

use std::collections::VecDeque;
use std::time::Duration;

use engine::port::Events;
use futures::stream::{self, BoxStream, StreamExt};
use ir::fold::unfold;
use ir::{Dialect, Error, ErrorKind, Event, Phase};
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use tokio::time::{Instant, timeout};
use wire::{Decoder, chat, error_body};

use super::request::Prepared;
use super::{Client, Timeouts};
use crate::limits::{ANSWER_BYTES_MAX, ERROR_BYTES_MAX};

pub(super) fn failed(error: Error) -> Events {
    stream::iter([Event::Error { error }]).boxed()
}

pub(super) fn events(client: Client, prepared: Prepared, dialect: Dialect, timeouts: Timeouts) -> Events {
    let answer = Answer {
        stage: Stage::Unsent(Box::new(prepared)),
        client,
        dialect,
        timeouts,
        deadline: Instant::now() + timeouts.total,
        ready: VecDeque::new(),
        taken_bytes: 0,
    };
    stream::unfold(answer, |mut answer| async move {
        let event = answer.next().await?;
        Some((event, answer))
    })
    .boxed()
}

struct Answer {
    stage: Stage,
    client: Client,
    dialect: Dialect,
    timeouts: Timeouts,
    deadline: Instant,
    /// Events that were decoded and not yet given out.
    ready: VecDeque<Event>,
    taken_bytes: usize,
}

enum Stage {
    Unsent(Box<Prepared>),
    Streaming {
        decoder: Box<Decoder>,
        bytes: BoxStream<'static, reqwest::Result<bytes::Bytes>>,
    },
    Ended,
}

impl Answer {
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                if matches!(event, Event::Error { .. }) {
                    self.stage = Stage::Ended;
                    self.ready.clear();
                }
                return Some(event);
            }
            match std::mem::replace(&mut self.stage, Stage::Ended) {
                Stage::Ended => return None,
                Stage::Unsent(prepared) => self.send(*prepared).await,
                Stage::Streaming { decoder, bytes } => self.read(decoder, bytes).await,
            }
        }
    }

    async fn send(&mut self, prepared: Prepared) {
        let warnings = prepared
            .warnings
            .into_iter()
            .map(|warning| Event::Warning { warning });
        self.ready.extend(warnings);
        let call = self
            .client
            .0
            .post(&prepared.url)
            .headers(prepared.headers)
            .body(prepared.body)
            .send();
        let patience = self.patience(self.timeouts.first_byte);
        let response = match timeout(patience, call).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return self.fail(transport_error(&error, Phase::BeforeFirstByte)),
            Err(_) => return self.fail(silence(Phase::BeforeFirstByte, patience)),
        };
        let status = response.status().as_u16();
        if status != 200 {
            let retry_after = response
                .headers()
                .get(RETRY_AFTER)
                .and_then(|value| value.to_str().ok())
                .map(String::from);
            let body = gather(response, ERROR_BYTES_MAX, self.timeouts.idle, self.deadline)
                .await
                .unwrap_or_default();
            return self.fail(error_body::decode(
                self.dialect,
                status,
                retry_after.as_deref(),
                &body,
            ));
        }
        let kind = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        if kind.starts_with("application/json") {
            return self.take_whole(response).await;
        }
        match Decoder::new(self.dialect) {
            Some(decoder) => {
                let bytes = response.bytes_stream().boxed();
                self.stage = Stage::Streaming {
                    decoder: Box::new(decoder),
                    bytes,
                };
            }
            None => self.fail(Error::new(
                ErrorKind::Internal,
                Phase::BeforeFirstByte,
                "this dialect has no streams",
            )),
        }
    }

    /// Some servers answer in one piece whatever they were asked for.
    async fn take_whole(&mut self, response: reqwest::Response) {
        let decoded = match gather(response, ANSWER_BYTES_MAX, self.timeouts.idle, self.deadline).await {
            Ok(body) => serde_json::from_slice(&body)
                .map_err(|error| {
                    Error::invalid_response(Phase::MidStream, format!("the answer is not JSON: {error}"))
                })
                .and_then(|value| chat::decode_response(self.dialect, value)),
            Err(error) => Err(error),
        };
        match decoded {
            Ok(response) => self.ready.extend(unfold(&response)),
            Err(error) => self.fail(error),
        }
    }

    async fn read(
        &mut self,
        mut decoder: Box<Decoder>,
        mut bytes: BoxStream<'static, reqwest::Result<bytes::Bytes>>,
    ) {
        let patience = self.patience(self.timeouts.idle);
        let mut events = Vec::new();
        match timeout(patience, bytes.next()).await {
            Ok(Some(Ok(piece))) => {
                self.taken_bytes += piece.len();
                if self.taken_bytes > ANSWER_BYTES_MAX {
                    return self.fail(Error::invalid_response(
                        Phase::MidStream,
                        "the answer is larger than allowed",
                    ));
                }
                decoder.push(&piece, &mut events);
                self.stage = Stage::Streaming { decoder, bytes };
            }
            // A broken connection and a tidy end are the same question to the dialect: was that all?
            Ok(Some(Err(_)) | None) => decoder.finish(&mut events),
            Err(_) => return self.fail(silence(Phase::MidStream, patience)),
        }
        self.ready.extend(events);
    }

    /// What is left of the time for this stage.
    fn patience(&self, stage: Duration) -> Duration {
        stage.min(self.deadline.saturating_duration_since(Instant::now()))
    }

    fn fail(&mut self, error: Error) {
        self.ready.push_back(Event::Error { error });
    }
}

/// A whole body within a limit.
async fn gather(
    response: reqwest::Response,
    limit: usize,
    idle: Duration,
    deadline: Instant,
) -> Result<Vec<u8>, Error> {
    let mut body = Vec::new();
    let mut bytes = response.bytes_stream();
    loop {
        let patience = idle.min(deadline.saturating_duration_since(Instant::now()));
        match timeout(patience, bytes.next()).await {
            Ok(Some(Ok(piece))) if body.len() + piece.len() <= limit => body.extend_from_slice(&piece),
            Ok(Some(Ok(_))) => {
                return Err(Error::invalid_response(
                    Phase::MidStream,
                    "the answer is larger than allowed",
                ));
            }
            Ok(Some(Err(error))) => return Err(transport_error(&error, Phase::MidStream)),
            Ok(None) => return Ok(body),
            Err(_) => return Err(silence(Phase::MidStream, patience)),
        }
    }
}

fn silence(phase: Phase, patience: Duration) -> Error {
    Error::new(
        ErrorKind::Timeout,
        phase,
        format!("the back-end was silent for {} ms", patience.as_millis()),
    )
}

/// What happened below HTTP. The URL is left out of the message: it may hold what is nobody's business.
fn transport_error(error: &reqwest::Error, phase: Phase) -> Error {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    let (kind, phase, what) = if error.is_timeout() {
        (ErrorKind::Timeout, Phase::BeforeSend, "connecting took too long")
    } else if error.is_connect() {
        (
            ErrorKind::Network,
            Phase::BeforeSend,
            "cannot connect to the back-end",
        )
    } else {
        (ErrorKind::Network, phase, "the connection to the back-end broke")
    };
    Error::new(kind, phase, format!("{what}: {cause}"))
}
