//! Executes a call and streams its events, with the raw bytes where they can be passed through. Every
//! failure ends in exactly one error event; at most one event of the dialect is buffered, and dropping the
//! stream closes the connection.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use engine::port::{EventStream, RawChunk, RawItem, RawStream};
use futures::stream::{self, StreamExt};
use hyper::header::{CONTENT_TYPE, DATE, RETRY_AFTER};
use ir::fold::unfold;
use ir::{Error, ErrorKind, Event, Phase, Request};
use secrecy::ExposeSecret;
use tokio::time::{Instant, timeout};
use wire::{Decoder, chat, error_body, response_summary};

use super::body::collect;
use super::passthrough::PassthroughRequest;
use super::raw_tap::RawTap;
use super::request::{PreparedRequest, prepare};
use super::response::{HttpResponse, ResponseBody};
use super::words::Words;
use super::{HttpInner, transport_error};
use crate::limits::{ANSWER_BYTES_MAX, ERROR_BYTES_MAX};
use crate::redaction::redact_text;

pub(super) fn events(instance: Arc<HttpInner>, request: Arc<Request>) -> EventStream {
    let answer = ResponseStream::new(instance, Stage::Request(request), None);
    // Boxed: moved for every event.
    stream::unfold(Box::new(answer), |mut answer| async move {
        loop {
            match answer.next().await? {
                RawItem::Event(event) => return Some((event, answer)),
                // Only a tap produces raw chunks.
                RawItem::Chunk(_) => {}
            }
        }
    })
    .boxed()
}

pub(super) fn pieces(instance: Arc<HttpInner>, forwarded: PassthroughRequest) -> RawStream {
    let tap = RawTap::new(
        instance.vendor.dialect,
        forwarded.streams,
        forwarded.strip_usage_frame,
    );
    let stage = Stage::Prepared(Box::new(forwarded.prepared));
    let answer = ResponseStream::new(instance, stage, Some(tap));
    stream::unfold(Box::new(answer), |mut answer| async move {
        let said = answer.next().await?;
        Some((said, answer))
    })
    .boxed()
}

struct ResponseStream {
    stage: Stage,
    instance: Arc<HttpInner>,
    deadline: Instant,
    /// Decoded and not yet returned.
    ready: VecDeque<RawItem>,
    /// Passes the raw bytes through, for a caller that uses the same dialect.
    tap: Option<RawTap>,
    /// Captures the raw response, for a caller with permission to see it.
    words: Option<Words>,
    taken_bytes: usize,
}

enum Stage {
    Request(Arc<Request>),
    Prepared(Box<PreparedRequest>),
    Streaming {
        decoder: Box<Decoder>,
        content: ResponseBody,
    },
    Ended,
}

/// The form of a response body.
enum ResponseForm {
    Unary,
    Stream,
}

impl ResponseStream {
    fn new(instance: Arc<HttpInner>, stage: Stage, tap: Option<RawTap>) -> Self {
        Self {
            stage,
            deadline: Instant::now() + instance.options.timeouts.total,
            instance,
            ready: VecDeque::new(),
            tap,
            words: None,
            taken_bytes: 0,
        }
    }

    fn new_words(&self) -> Words {
        let HttpInner { vendor, options, .. } = &*self.instance;
        Words::new(vendor.dialect, options.key.clone())
    }

    async fn next(&mut self) -> Option<RawItem> {
        loop {
            if let Some(said) = self.ready.pop_front() {
                if matches!(said, RawItem::Event(Event::Error { .. })) {
                    self.stage = Stage::Ended;
                    self.ready.clear();
                }
                return Some(said);
            }
            match std::mem::replace(&mut self.stage, Stage::Ended) {
                Stage::Ended => return None,
                Stage::Request(request) => match prepare(&self.instance, &request).await {
                    Ok(prepared) => {
                        self.words = request.wants_raw().then(|| self.new_words());
                        self.stage = Stage::Prepared(Box::new(prepared));
                    }
                    Err(error) => self.fail(error),
                },
                Stage::Prepared(prepared) => self.send(*prepared).await,
                Stage::Streaming { decoder, content } => self.read(decoder, content).await,
            }
        }
    }

    async fn send(&mut self, prepared: PreparedRequest) {
        let warnings = prepared
            .warnings
            .into_iter()
            .map(|warning| RawItem::Event(Event::Warning { warning }));
        self.ready.extend(warnings);
        let instance = self.instance.clone();
        let call = instance
            .client
            .post(&prepared.url, prepared.headers, prepared.body);
        let first_byte = self.instance.options.timeouts.first_byte;
        let reply = match timeout(self.stage_timeout(first_byte), call).await {
            Ok(Ok(reply)) => reply,
            Ok(Err(error)) => return self.fail(error),
            Err(_) => return self.fail(self.late(Phase::BeforeFirstByte, first_byte)),
        };
        if reply.status != 200 {
            return self.take_refusal(reply).await;
        }
        match form(&reply) {
            Ok(ResponseForm::Unary) => self.take_whole(reply).await,
            Ok(ResponseForm::Stream) => self.take_stream(reply),
            Err(error) => self.fail(error),
        }
    }

    async fn take_refusal(&mut self, reply: HttpResponse) {
        let status = reply.status;
        let date = reply.header(&DATE);
        let retry_after = reply.header(&RETRY_AFTER);
        let retry_after = retry_after.and_then(|text| error_body::retry_after_seconds(text, date));
        let idle = self.instance.options.timeouts.idle;
        let body = collect(reply, ERROR_BYTES_MAX, idle, self.deadline).await;
        self.fail(error_body::decode(
            self.instance.vendor.dialect,
            status,
            retry_after.as_deref(),
            &body.unwrap_or_default(),
        ));
    }

    /// Some servers send a unary response even if a stream was requested.
    async fn take_whole(&mut self, reply: HttpResponse) {
        let dialect = self.instance.vendor.dialect;
        let idle = self.instance.options.timeouts.idle;
        let body = match collect(reply, ANSWER_BYTES_MAX, idle, self.deadline).await {
            Ok(body) => body,
            Err(error) if error.kind == ErrorKind::Timeout => {
                return self.fail(self.late(Phase::MidStream, idle));
            }
            Err(error) => return self.fail(error),
        };
        let passed_on = self.tap.as_ref().is_some_and(|tap| !tap.streams);
        if passed_on && let Some(events) = response_summary::summarize(dialect, &body) {
            let bytes = body.into();
            return self.ready.push_back(RawItem::Chunk(RawChunk { bytes, events }));
        }
        let decoded = serde_json::from_slice(&body)
            .map_err(|error| {
                Error::invalid_response(Phase::MidStream, format!("the answer is not JSON: {error}"))
            })
            .and_then(|value| {
                if let Some(words) = self.words.take() {
                    let told = words.of_whole(&value, body.len());
                    self.ready.push_back(RawItem::Event(told));
                }
                chat::decode_response(dialect, value)
            });
        match decoded {
            Ok(response) if passed_on => {
                self.ready.push_back(RawItem::Chunk(RawChunk {
                    bytes: body.into(),
                    events: unfold(&response),
                }));
            }
            Ok(response) => self
                .ready
                .extend(unfold(&response).into_iter().map(RawItem::Event)),
            Err(error) => self.fail(error),
        }
    }

    fn take_stream(&mut self, reply: HttpResponse) {
        // A caller that requested a unary response cannot use the raw bytes of a stream.
        self.tap.take_if(|tap| !tap.streams);
        match Decoder::new(self.instance.vendor.dialect) {
            Some(decoder) => {
                self.stage = Stage::Streaming {
                    decoder: Box::new(decoder),
                    content: reply.content,
                };
            }
            None => self.fail(Error::new(
                ErrorKind::Internal,
                Phase::BeforeFirstByte,
                "this dialect has no streams",
            )),
        }
    }

    async fn read(&mut self, mut decoder: Box<Decoder>, mut content: ResponseBody) {
        let idle = self.instance.options.timeouts.idle;
        // Releases the buffer while waiting.
        self.ready = VecDeque::new();
        match timeout(self.stage_timeout(idle), content.next()).await {
            Ok(Some(Ok(bytes))) => {
                self.taken_bytes += bytes.len();
                if self.taken_bytes > ANSWER_BYTES_MAX {
                    return self.fail(transport_error::too_large(ANSWER_BYTES_MAX));
                }
                self.decode(Some(bytes), &mut decoder);
                self.stage = Stage::Streaming { decoder, content };
            }
            // After an error or a clean end, the decoder decides whether the response is complete.
            Ok(Some(Err(_)) | None) => self.decode(None, &mut decoder),
            Err(_) => self.fail(self.late(Phase::MidStream, idle)),
        }
    }

    /// Decodes these bytes; `None` is the end of the stream.
    fn decode(&mut self, bytes: Option<Bytes>, decoder: &mut Decoder) {
        if let Some(tap) = &mut self.tap {
            match bytes {
                Some(bytes) => tap.push(bytes, decoder, &mut self.ready),
                None => tap.finish(decoder, &mut self.ready),
            }
            if let Some(RawItem::Event(Event::Error { .. })) = self.ready.back()
                && let Some(RawItem::Event(Event::Error { error })) = self.ready.pop_back()
            {
                self.fail(error);
            }
            return;
        }
        if let Some(words) = &mut self.words {
            words.hear(bytes.as_deref());
        }
        let mut events = Vec::new();
        match bytes {
            Some(bytes) => decoder.push(&bytes, &mut events),
            None => decoder.finish(&mut events),
        }
        for event in events {
            if matches!(event, Event::Finish { .. })
                && let Some(words) = self.words.take()
            {
                self.ready.push_back(RawItem::Event(words.of_stream()));
            }
            match event {
                Event::Error { error } => self.fail(error),
                event => self.ready.push_back(RawItem::Event(event)),
            }
        }
    }

    /// The timeout of a stage, limited by the total deadline.
    fn stage_timeout(&self, stage: Duration) -> Duration {
        stage.min(self.deadline.saturating_duration_since(Instant::now()))
    }

    /// The error of the exceeded limit: the timeout of the stage, or the total timeout.
    fn late(&self, phase: Phase, stage: Duration) -> Error {
        if Instant::now() >= self.deadline {
            transport_error::total_timeout(phase, self.instance.options.timeouts.total)
        } else {
            transport_error::idle_timeout(phase, stage)
        }
    }

    /// A server may quote the API key in an error message, so the key is redacted.
    fn fail(&mut self, mut error: Error) {
        if let Some(key) = &self.instance.options.key {
            redact_text(&mut error.message, key.expose_secret(), "(key)");
        }
        let error = self.instance.named(error);
        self.ready.push_back(RawItem::Event(Event::Error { error }));
    }
}

/// The form by content type. Without a content type a stream is assumed.
fn form(reply: &HttpResponse) -> Result<ResponseForm, Error> {
    let value = reply.header(&CONTENT_TYPE).unwrap_or_default();
    let kind = value.split(';').next().unwrap_or_default().trim().to_lowercase();
    match kind.as_str() {
        "application/json" => Ok(ResponseForm::Unary),
        ""
        | "text/event-stream"
        | "application/x-ndjson"
        | "application/ndjson"
        | "application/stream+json"
        | "application/jsonl" => Ok(ResponseForm::Stream),
        _ => Err(transport_error::unexpected_content_type(value)),
    }
}
