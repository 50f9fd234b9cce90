//! From a call to events, with the answer's own bytes beside them where these can be passed on. Every way in which a call can fail ends in exactly one error event; nothing is
//! gathered beyond one event of the dialect, and dropping the stream hangs up.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use engine::port::{EventStream, RawChunk, RawStream, RawItem};
use futures::FutureExt;
use futures::stream::{self, StreamExt};
use ir::fold::unfold;
use ir::{Error, ErrorKind, Event, Phase, Request};
use reqwest::header::{CONTENT_TYPE, DATE, RETRY_AFTER};
use secrecy::ExposeSecret;
use tokio::time::{Instant, timeout};
use wire::{Decoder, chat, error_body, response_summary};

use super::body::collect;
use super::passthrough::PassthroughRequest;
use super::response::{ResponseBody, HttpResponse};
use super::request::{PreparedRequest, prepare};
use super::raw_tap::RawTap;
use super::words::Words;
use super::{HttpInner, transport_error};
use crate::limits::{ANSWER_BYTES_MAX, ERROR_BYTES_MAX};

/// How much of an answer is looked at first; twice as much each time from then on.
const FIRST_SHARE_BYTES: usize = 1024;

/// What a caller listens to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventFilter {
    All,
    /// Words, usage and the end.
    TextOnly,
}

pub(super) fn events(instance: Arc<HttpInner>, request: Arc<Request>, ear: EventFilter) -> EventStream {
    let mut answer = ResponseStream::new(instance, Stage::Request(request), None);
    answer.ear = ear;
    // In a box: it changes hands with every event.
    stream::unfold(Box::new(answer), |mut answer| async move {
        loop {
            match answer.next().await? {
                RawItem::Event(event) => return Some((event, answer)),
                // Without a tap there are none.
                RawItem::Chunk(_) => {}
            }
        }
    })
    .boxed()
}

pub(super) fn pieces(instance: Arc<HttpInner>, forwarded: PassthroughRequest) -> RawStream {
    let tap = RawTap::new(instance.vendor.dialect, forwarded.streams, forwarded.strip_usage_frame);
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
    /// What was read and not yet given out.
    ready: VecDeque<RawItem>,
    /// Lets the bytes through, for a caller that understands them.
    tap: Option<RawTap>,
    ear: EventFilter,
    /// What the server says, for a caller who may see it.
    words: Option<Words>,
    taken_bytes: usize,
    /// What has arrived and was not looked at yet.
    undecoded: Bytes,
    /// How much of it is looked at next.
    decode_limit: usize,
}

enum Stage {
    Request(Arc<Request>),
    Prepared(Box<PreparedRequest>),
    Streaming {
        decoder: Box<Decoder>,
        content: Box<ResponseBody>,
    },
    Ended,
}

/// In which form an answer comes.
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
            ear: EventFilter::All,
            words: None,
            taken_bytes: 0,
            undecoded: Bytes::new(),
            decode_limit: FIRST_SHARE_BYTES,
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
                // Asking has a box of its own: an answer that goes on does not keep the room for it.
                Stage::Request(request) => match prepare(&self.instance, &request).boxed().await {
                    Ok(prepared) => {
                        self.words = request.wants_raw().then(|| self.new_words());
                        self.stage = Stage::Prepared(Box::new(prepared));
                    }
                    Err(error) => self.fail(error),
                },
                Stage::Prepared(prepared) => self.send(*prepared).boxed().await,
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
        let call = instance.post(&prepared.url, prepared.headers, prepared.body);
        let first_byte = self.instance.options.timeouts.first_byte;
        let reply = match timeout(self.patience(first_byte), call).await {
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

    /// Some servers answer in one piece whatever they were asked for.
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
        if self.ear == EventFilter::TextOnly
            && self.words.is_none()
            && let Some(response) = response_summary::text_response(dialect, &body)
        {
            return self.ready.extend(unfold(&response).into_iter().map(RawItem::Event));
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
            Ok(response) => self.ready.extend(unfold(&response).into_iter().map(RawItem::Event)),
            Err(error) => self.fail(error),
        }
    }

    fn take_stream(&mut self, reply: HttpResponse) {
        // Bytes of a stream are nothing to a caller who wants a whole answer.
        self.tap.take_if(|tap| !tap.streams);
        match Decoder::new(self.instance.vendor.dialect) {
            Some(decoder) => {
                self.stage = Stage::Streaming {
                    decoder: Box::new(decoder),
                    content: Box::new(reply.content),
                };
            }
            None => self.fail(Error::new(
                ErrorKind::Internal,
                Phase::BeforeFirstByte,
                "this dialect has no streams",
            )),
        }
    }

    async fn read(&mut self, mut decoder: Box<Decoder>, mut content: Box<ResponseBody>) {
        if !self.undecoded.is_empty() {
            self.look(&mut decoder);
            self.stage = Stage::Streaming { decoder, content };
            return;
        }
        let idle = self.instance.options.timeouts.idle;
        // Nothing is held while a server thinks.
        self.ready = VecDeque::new();
        match timeout(self.patience(idle), content.next()).await {
            Ok(Some(Ok(bytes))) => {
                self.taken_bytes += bytes.len();
                if self.taken_bytes > ANSWER_BYTES_MAX {
                    return self.fail(transport_error::too_large(ANSWER_BYTES_MAX));
                }
                self.undecoded = bytes;
                self.look(&mut decoder);
                self.stage = Stage::Streaming { decoder, content };
            }
            // A broken connection and a tidy end are the same question to the dialect: was that all?
            Ok(Some(Err(_)) | None) => self.decode(None, &mut decoder),
            Err(_) => self.fail(self.late(Phase::MidStream, idle)),
        }
    }

    /// Looks at some of what has arrived: the first words of an answer do not wait for all that came with them.
    fn look(&mut self, decoder: &mut Decoder) {
        let bytes = match self.tap {
            // They are passed on as they came.
            Some(_) => std::mem::take(&mut self.undecoded),
            None => self.undecoded.split_to(self.decode_limit.min(self.undecoded.len())),
        };
        self.decode_limit = self.decode_limit.saturating_mul(2);
        self.decode(Some(bytes), decoder);
    }

    /// What these bytes say; or, without any, what is still owed at the end.
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

    /// What is left of the time for this stage.
    fn patience(&self, stage: Duration) -> Duration {
        stage.min(self.deadline.saturating_duration_since(Instant::now()))
    }

    /// Which of two limits was reached: that of this stage, or that of the whole.
    fn late(&self, phase: Phase, stage: Duration) -> Error {
        if Instant::now() >= self.deadline {
            transport_error::total_timeout(phase, self.instance.options.timeouts.total)
        } else {
            transport_error::idle_timeout(phase, stage)
        }
    }

    /// A server may quote the key that it refuses: nobody gets to read it.
    fn fail(&mut self, mut error: Error) {
        if let Some(key) = &self.instance.options.key {
            error.message = error.message.replace(key.expose_secret(), "(key)");
        }
        self.ready.push_back(RawItem::Event(Event::Error { error }));
    }
}

/// What the server says it sends. An answer that says nothing is taken for a stream: its first event tells.
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
