//! From a call to events. Every way in which a call can fail ends in exactly one error event; nothing is
//! gathered beyond one event of the dialect, and dropping the stream hangs up.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use engine::port::Events;
use futures::stream::{self, BoxStream, StreamExt};
use ir::fold::unfold;
use ir::{Error, ErrorKind, Event, Phase, Request};
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use secrecy::ExposeSecret;
use tokio::time::{Instant, timeout};
use wire::{Decoder, chat, error_body};

use super::body::gather;
use super::request::{Prepared, prepare};
use super::{Instance, fault};
use crate::limits::{ANSWER_BYTES_MAX, ERROR_BYTES_MAX};

pub(super) fn events(instance: Arc<Instance>, request: Arc<Request>) -> Events {
    let answer = Answer {
        stage: Stage::Asked(request),
        deadline: Instant::now() + instance.options.timeouts.total,
        instance,
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
    instance: Arc<Instance>,
    deadline: Instant,
    /// Events that were decoded and not yet given out.
    ready: VecDeque<Event>,
    taken_bytes: usize,
}

type Bytes = BoxStream<'static, reqwest::Result<bytes::Bytes>>;

enum Stage {
    Asked(Arc<Request>),
    Prepared(Box<Prepared>),
    Streaming { decoder: Box<Decoder>, bytes: Bytes },
    Ended,
}

/// In which form an answer comes.
enum Form {
    Whole,
    Stream,
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
                Stage::Asked(request) => match prepare(&self.instance, &request).await {
                    Ok(prepared) => self.stage = Stage::Prepared(Box::new(prepared)),
                    Err(error) => self.fail(error),
                },
                Stage::Prepared(prepared) => self.send(*prepared).await,
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
            .instance
            .client
            .0
            .post(&prepared.url)
            .headers(prepared.headers)
            .body(prepared.body)
            .send();
        let first_byte = self.instance.options.timeouts.first_byte;
        let response = match timeout(self.patience(first_byte), call).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return self.fail(fault::transport(&error, Phase::BeforeFirstByte)),
            Err(_) => return self.fail(self.late(Phase::BeforeFirstByte, first_byte)),
        };
        if response.status().as_u16() != 200 {
            return self.take_refusal(response).await;
        }
        match form(&response) {
            Ok(Form::Whole) => self.take_whole(response).await,
            Ok(Form::Stream) => self.take_stream(response),
            Err(error) => self.fail(error),
        }
    }

    async fn take_refusal(&mut self, response: reqwest::Response) {
        let status = response.status().as_u16();
        let retry_after = response
            .headers()
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok())
            .map(String::from);
        let idle = self.instance.options.timeouts.idle;
        let body = gather(response, ERROR_BYTES_MAX, idle, self.deadline).await;
        self.fail(error_body::decode(
            self.instance.vendor.dialect,
            status,
            retry_after.as_deref(),
            &body.unwrap_or_default(),
        ));
    }

    /// Some servers answer in one piece whatever they were asked for.
    async fn take_whole(&mut self, response: reqwest::Response) {
        let dialect = self.instance.vendor.dialect;
        let idle = self.instance.options.timeouts.idle;
        let decoded = match gather(response, ANSWER_BYTES_MAX, idle, self.deadline).await {
            Ok(body) => serde_json::from_slice(&body)
                .map_err(|error| {
                    Error::invalid_response(Phase::MidStream, format!("the answer is not JSON: {error}"))
                })
                .and_then(|value| chat::decode_response(dialect, value)),
            Err(error) if error.kind == ErrorKind::Timeout => Err(self.late(Phase::MidStream, idle)),
            Err(error) => Err(error),
        };
        match decoded {
            Ok(response) => self.ready.extend(unfold(&response)),
            Err(error) => self.fail(error),
        }
    }

    fn take_stream(&mut self, response: reqwest::Response) {
        match Decoder::new(self.instance.vendor.dialect) {
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

    async fn read(&mut self, mut decoder: Box<Decoder>, mut bytes: Bytes) {
        let idle = self.instance.options.timeouts.idle;
        let mut events = Vec::new();
        match timeout(self.patience(idle), bytes.next()).await {
            Ok(Some(Ok(piece))) => {
                self.taken_bytes += piece.len();
                if self.taken_bytes > ANSWER_BYTES_MAX {
                    return self.fail(fault::too_large(ANSWER_BYTES_MAX));
                }
                decoder.push(&piece, &mut events);
                self.stage = Stage::Streaming { decoder, bytes };
            }
            // A broken connection and a tidy end are the same question to the dialect: was that all?
            Ok(Some(Err(_)) | None) => decoder.finish(&mut events),
            Err(_) => return self.fail(self.late(Phase::MidStream, idle)),
        }
        for event in events {
            match event {
                Event::Error { error } => self.fail(error),
                event => self.ready.push_back(event),
            }
        }
    }

    /// What is left of the time for this stage.
    fn patience(&self, stage: Duration) -> Duration {
        stage.min(self.deadline.saturating_duration_since(Instant::now()))
    }

    /// Which of two limits was reached: that of this stage, or that of the whole.
    fn late(&self, phase: Phase, stage: Duration) -> Error {
        if Instant::now() >= self.deadline {
            fault::overdue(phase, self.instance.options.timeouts.total)
        } else {
            fault::silence(phase, stage)
        }
    }

    /// A server may quote the key that it refuses: nobody gets to read it.
    fn fail(&mut self, mut error: Error) {
        if let Some(key) = &self.instance.options.key {
            error.message = error.message.replace(key.expose_secret(), "(key)");
        }
        self.ready.push_back(Event::Error { error });
    }
}

/// What the server says it sends. An answer that says nothing is taken for a stream: its first event tells.
fn form(response: &reqwest::Response) -> Result<Form, Error> {
    let value = response.headers().get(CONTENT_TYPE);
    let value = value.and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = value.split(';').next().unwrap_or_default().trim().to_lowercase();
    match kind.as_str() {
        "application/json" => Ok(Form::Whole),
        ""
        | "text/event-stream"
        | "application/x-ndjson"
        | "application/ndjson"
        | "application/stream+json"
        | "application/jsonl" => Ok(Form::Stream),
        _ => Err(fault::foreign(value)),
    }
}
