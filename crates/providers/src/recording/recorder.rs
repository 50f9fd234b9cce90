//! Writes down what back-ends answer, whoever they are. What is kept is what led to the answer: of the
//! attempts at one question those that finished, or the last that failed if none did; where a run asked the
//! same question again because the first answer was not good enough, the last answer. Ids and times of the
//! vendor are left out, and text that came in pieces is kept in one: words, not their rhythm.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use engine::port::{UnaryResponse, Backend, EventStream, RawStream, Upstream, RawRequest};
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

/// The answers so far.
#[derive(Debug, Default)]
pub struct Recorder {
    redactor: Redactor,
    heard: Mutex<RecordedExchange>,
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
    /// The request's own id, which all calls of one run share.
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
    /// Secrets that must not be written down, whoever says them.
    pub fn new(secrets: Vec<SecretString>) -> Arc<Self> {
        Arc::new(Self {
            redactor: Redactor::new(secrets),
            heard: Mutex::default(),
        })
    }

    /// The same back-end, written down.
    pub fn wrap(self: &Arc<Self>, inner: Arc<dyn Upstream>) -> Arc<dyn Upstream> {
        Arc::new(RecordingUpstream {
            inner,
            recorder: self.clone(),
        })
    }

    /// Everything that was answered, as a script that can be played.
    pub fn script(&self) -> Result<Script, RecordError> {
        let heard = self.heard();
        if heard.bytes > limits::RECORDING_BYTES_MAX {
            return Err(RecordError::TooLarge);
        }
        Ok(Script(select(&heard.exchanges)))
    }

    fn heard(&self) -> MutexGuard<'_, RecordedExchange> {
        // Nothing panics while it holds the lock.
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
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
        let mut heard = self.heard();
        heard.bytes += taking.bytes;
        if heard.bytes <= limits::RECORDING_BYTES_MAX {
            heard.exchanges.push(CapturedAnswer {
                exchange,
                outcome: taking.outcome,
                asker: taking.asker,
            });
        }
    }
}

/// What a replay needs: see the head of this file. A question that was answered more than once is answered
/// in the same order again.
fn select(heard: &[CapturedAnswer]) -> Vec<Exchange> {
    let mut kept: Vec<&CapturedAnswer> = Vec::new();
    for (place, taken) in heard.iter().enumerate() {
        let same = |other: &&CapturedAnswer| other.hash() == taken.hash();
        let finished = |other: &CapturedAnswer| other.outcome == Outcome::Finished;
        let finished_elsewhere = heard.iter().filter(same).any(finished);
        let mut later = heard.iter().skip(place + 1).filter(same);
        let wanted = match taken.outcome {
            // Whoever asks again does not want the answer before.
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

// A back-end that is written down is the same back-end: whatever it can be asked goes through.
#[deny(clippy::missing_trait_methods)]
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

    /// What is written down is what bytes mean, so nothing is passed by.
    fn stream_raw(&self, _: &Arc<Request>, _: &Arc<RawRequest>) -> Option<RawStream> {
        None
    }

    fn call(&self, request: Arc<Request>) -> BoxFuture<'static, Result<UnaryResponse, Error>> {
        self.inner.call(request)
    }

    /// All of it is written down.
    fn stream_text(&self, request: Arc<Request>) -> EventStream {
        self.stream(request)
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

/// One answer while it is taken down.
struct StreamRecording {
    fingerprint: Fingerprint,
    asker: String,
    backend: Backend,
    events: Vec<Event>,
    bytes: usize,
    outcome: Outcome,
}

impl StreamRecording {
    fn hear(&mut self, event: &Event) {
        match event {
            Event::Finish { .. } => self.outcome = Outcome::Finished,
            Event::Error { .. } => self.outcome = Outcome::Failed,
            // What is kept is what it means.
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

/// Passes events on and writes them down; an answer that nobody heard to its end is not one.
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
                    taking.hear(event);
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
