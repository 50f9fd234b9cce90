//! Records the responses of any back-ends. Only the relevant attempts of a request are recorded: the
//! successful ones, or the last failed one if none succeeded; if a run repeated the same request because a
//! response was rejected, the last response. Ids and times of the vendor are removed, and text deltas are
//! merged: timing is not recorded.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use engine::port::{Backend, EventStream, RawRequest, RawStream, UnaryResponse, Upstream};
use futures::future::BoxFuture;
use futures::{Stream, StreamExt};
use ir::event::Delta;
use ir::{Error, Event, Request};
use secrecy::SecretString;

use super::fingerprint::Fingerprint;
use super::redact::Redactor;
use crate::limits;
use crate::scripted::{Exchange, Recorded, RecordedBackend, Script};

#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error(
        "the answers are longer than {} bytes, too long to be recorded",
        limits::RECORDING_BYTES_MAX
    )]
    TooLarge,
    #[error("the recording cannot be written as YAML: {0}")]
    Form(String),
}

/// The responses so far.
#[derive(Debug, Default)]
pub struct Recorder {
    redactor: Redactor,
    recorded: Mutex<RecordedExchange>,
}

#[derive(Debug, Default)]
struct RecordedExchange {
    exchanges: Vec<CapturedAnswer>,
    bytes: usize,
}

#[derive(Debug)]
struct CapturedAnswer {
    exchange: Exchange,
    outcome: Outcome,
    /// The request id, which all calls of one run share.
    asker: String,
}

impl CapturedAnswer {
    fn hash(&self) -> Option<&str> {
        self.exchange
            .request
            .as_ref()
            .map(|request| request.sha256.as_str())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Finished,
    Failed,
}

impl Recorder {
    /// Secrets that are removed from requests and responses.
    pub fn new(secrets: Vec<SecretString>) -> Arc<Self> {
        Arc::new(Self {
            redactor: Redactor::new(secrets),
            recorded: Mutex::default(),
        })
    }

    /// The same back-end with recording.
    pub fn wrap(self: &Arc<Self>, inner: Arc<dyn Upstream>) -> Arc<dyn Upstream> {
        Arc::new(RecordingUpstream {
            inner,
            recorder: self.clone(),
        })
    }

    /// All responses, as a script for replay.
    pub fn script(&self) -> Result<Script, RecordError> {
        let recorded = self.recorded();
        if recorded.bytes > limits::RECORDING_BYTES_MAX {
            return Err(RecordError::TooLarge);
        }
        Ok(Script(select(&recorded.exchanges)))
    }

    fn recorded(&self) -> MutexGuard<'_, RecordedExchange> {
        // No code panics while the lock is held.
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, taking: StreamRecording) {
        let mut asked = taking.fingerprint.asked;
        self.redactor.value(&mut asked);
        let exchange = Exchange {
            request: Some(Recorded {
                sha256: taking.fingerprint.sha256,
                asked,
            }),
            backend: Some(RecordedBackend {
                name: taking.backend.name,
                kind: taking.backend.kind,
                model: taking.backend.model,
            }),
            events: Some(
                taking
                    .events
                    .into_iter()
                    .map(|e| self.redactor.event(e))
                    .collect(),
            ),
            ..Exchange::default()
        };
        let mut recorded = self.recorded();
        recorded.bytes += taking.bytes;
        if recorded.bytes <= limits::RECORDING_BYTES_MAX {
            recorded.exchanges.push(CapturedAnswer {
                exchange,
                outcome: taking.outcome,
                asker: taking.asker,
            });
        }
    }
}

/// Selects what a replay needs: see the file header. Several responses to the same request are replayed in
/// the recorded order.
fn select(recorded: &[CapturedAnswer]) -> Vec<Exchange> {
    let mut kept: Vec<&CapturedAnswer> = Vec::new();
    for (place, taken) in recorded.iter().enumerate() {
        let same = |other: &&CapturedAnswer| other.hash() == taken.hash();
        let finished = |other: &CapturedAnswer| other.outcome == Outcome::Finished;
        let finished_elsewhere = recorded.iter().filter(same).any(finished);
        let mut later = recorded.iter().skip(place + 1).filter(same);
        let wanted = match taken.outcome {
            // A repeated request of the same run supersedes the previous response.
            Outcome::Finished => !later.any(|other| finished(other) && other.asker == taken.asker),
            Outcome::Failed => !finished_elsewhere && later.next().is_none(),
        };
        if wanted {
            kept.push(taken);
        }
    }
    let again = |place: usize, taken: &CapturedAnswer| {
        let mut later = kept.iter().skip(place + 1);
        later.any(|other| other.hash() == taken.hash())
    };
    let exchanges = kept.iter().enumerate().map(|(place, taken)| Exchange {
        times: again(place, taken).then_some(1),
        ..taken.exchange.clone()
    });
    exchanges.collect()
}

#[derive(Debug)]
struct RecordingUpstream {
    inner: Arc<dyn Upstream>,
    recorder: Arc<Recorder>,
}

impl Upstream for RecordingUpstream {
    fn backend(&self) -> &Backend {
        self.inner.backend()
    }

    fn count_request(&self, request: Arc<Request>) -> BoxFuture<'static, Option<u64>> {
        self.inner.count_request(request)
    }

    fn supports_patches(&self) -> bool {
        self.inner.supports_patches()
    }

    fn count_tokens(&self, text: &str) -> Option<usize> {
        self.inner.count_tokens(text)
    }

    /// Events are recorded, so passthrough is disabled.
    fn stream_raw(&self, _: &Arc<Request>, _: &Arc<RawRequest>) -> Option<RawStream> {
        None
    }

    fn call(&self, request: Arc<Request>) -> BoxFuture<'static, Result<UnaryResponse, Error>> {
        self.inner.call(request)
    }

    fn stream(&self, request: Arc<Request>) -> EventStream {
        let taking = StreamRecording {
            fingerprint: Fingerprint::of(&request),
            asker: request.request_id.clone(),
            backend: self.inner.backend().clone(),
            events: Vec::new(),
            bytes: 0,
            outcome: Outcome::Failed,
        };
        Box::pin(Tee {
            events: self.inner.stream(request),
            recorder: self.recorder.clone(),
            taking: Some(taking),
        })
    }
}

/// One response in progress.
struct StreamRecording {
    fingerprint: Fingerprint,
    asker: String,
    backend: Backend,
    events: Vec<Event>,
    bytes: usize,
    outcome: Outcome,
}

impl StreamRecording {
    fn record(&mut self, event: &Event) {
        match event {
            Event::Finish { .. } => self.outcome = Outcome::Finished,
            Event::Error { .. } => self.outcome = Outcome::Failed,
            // Only decoded events are recorded.
            Event::Raw { .. } => return,
            _ => {}
        }
        if let (
            Event::BlockDelta {
                index,
                delta: Delta::Text { text },
            },
            Some(Event::BlockDelta {
                index: last,
                delta: Delta::Text { text: so_far },
            }),
        ) = (event, self.events.last_mut())
            && index == last
        {
            self.bytes += text.len();
            if self.bytes <= limits::RECORDING_BYTES_MAX {
                so_far.push_str(text);
            }
            return;
        }
        let event = match event {
            Event::Started { model, .. } => Event::Started {
                id: None,
                model: model.clone(),
                created: None,
            },
            event => event.clone(),
        };
        self.bytes += size(&event);
        if self.bytes <= limits::RECORDING_BYTES_MAX {
            self.events.push(event);
        }
    }
}

fn size(event: &Event) -> usize {
    match event {
        Event::BlockDelta {
            delta: Delta::Text { text },
            ..
        } => text.len(),
        event => serde_json::to_vec(event).map_or(0, |bytes| bytes.len()),
    }
}

/// Forwards events and records them; a response that was not read to its end is not recorded.
struct Tee {
    events: EventStream,
    recorder: Arc<Recorder>,
    taking: Option<StreamRecording>,
}

impl Stream for Tee {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
        let polled = self.events.poll_next_unpin(context);
        match &polled {
            Poll::Ready(Some(event)) => {
                if let Some(taking) = &mut self.taking {
                    taking.record(event);
                }
                // Usage may follow a finish; nothing follows an error.
                if matches!(event, Event::Error { .. }) {
                    self.close();
                }
            }
            Poll::Ready(None) => self.close(),
            Poll::Pending => {}
        }
        polled
    }
}

impl Tee {
    fn close(&mut self) {
        if let Some(taking) = self.taking.take() {
            self.recorder.keep(taking);
        }
    }
}

impl Drop for Tee {
    fn drop(&mut self) {
        if self
            .taking
            .as_ref()
            .is_some_and(|taking| taking.outcome == Outcome::Finished)
        {
            self.close();
        }
    }
}
