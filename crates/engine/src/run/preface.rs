//! What precedes the first attempt of a run that waits for a permit or has media in its input: the stream is
//! opened, the wait and the inspection of media are reported as progress, and the run continues with a
//! request that carries the media, or fails.

use std::sync::Arc;
use std::time::Duration;

use ir::RunId;
use module::envelope::ErrorBody;
use module::stream::{Chunk, Progress};
use module::{Code, Module};
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::broadcast::RunBroadcast;
use super::command::{RunMode, Warning};
use super::machine::SentProgress;
use super::render::encode;
use super::sink::RunSink;
use super::subscription::opening_meta;
use crate::admission::{Permit, Queue};
use crate::limits;
use crate::media::{MediaPipeline, PreparedMedia};
use crate::port::JournalEntry;

/// Result of the preparation that precedes the machine.
#[derive(Clone, Debug, Default)]
pub struct Preface {
    /// The first chunk has been sent.
    pub(crate) opened: bool,
    /// The error that ends the run before any back-end is called.
    pub(crate) refused: Option<Box<ErrorBody>>,
    /// Warnings found after the first chunk was sent.
    pub(crate) warnings: Vec<Warning>,
    pub(crate) media: Option<Box<MediaFacts>>,
    /// Duration of the preparation; it counts towards the time limit of the run.
    pub(crate) took_ms: u64,
}

/// Facts about inspected media, for the meta of the answer.
#[derive(Clone, Debug)]
pub(crate) struct MediaFacts {
    pub(crate) processed: Value,
    pub(crate) validation: Value,
}

/// The preparation of a run: reports progress and can be cancelled.
#[derive(Debug)]
pub(crate) struct Opening<'a> {
    pub(crate) run: RunId,
    pub(crate) sink: &'a RunSink,
    pub(crate) live: Arc<RunBroadcast>,
    pub(crate) offset: u64,
    pub(crate) mode: RunMode,
    pub(crate) progress: bool,
    /// `_warnings`, as the first chunk carries them.
    pub(crate) annotations: Map<String, Value>,
    /// Set if an earlier server has sent the first chunk already.
    pub(crate) inherited: Option<SentProgress>,
    /// This server has sent the first chunk.
    pub(crate) opened: bool,
    pub(crate) deadline_ms: u64,
    pub(crate) stop: CancellationToken,
}

impl Opening<'_> {
    /// Prepares the media of a run; `None` if the server stops meanwhile.
    pub(crate) async fn prepare(
        &mut self,
        desk: &MediaPipeline,
        module: &Module,
        input: &Map<String, Value>,
    ) -> Option<(Preface, PreparedMedia)> {
        let began = Instant::now();
        self.open("inspecting media").await;
        let mut preface = self.preface();
        let watched = self.watch(desk, module, input).await?;
        preface.took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        match watched {
            Ok(ready) => {
                preface.warnings.clone_from(&ready.warnings);
                preface.media = Some(Box::new(MediaFacts {
                    processed: Value::Array(ready.processed.clone()),
                    validation: ready.validation(),
                }));
                Some((preface, ready))
            }
            Err(body) => {
                preface.refused = Some(body);
                Some((preface, PreparedMedia::default()))
            }
        }
    }

    /// Waits for the permit of a run; `None` if the server stops meanwhile.
    pub(crate) async fn wait(&mut self, queue: Queue) -> Option<Result<Permit, Box<ErrorBody>>> {
        self.open("queued").await;
        self.tell("queue", String::from("waiting for a free slot")).await;
        let (stop, cancel) = (self.stop.clone(), self.live.cancel.clone());
        tokio::select! {
            biased;
            () = stop.cancelled() => None,
            () = cancel.cancelled() => {
                Some(Err(Box::new(ErrorBody::new(Code::E2010, "the run was cancelled"))))
            }
            turn = queue.0 => Some(turn),
        }
    }

    /// The preface that follows what was sent so far.
    pub(crate) fn preface(&self) -> Preface {
        Preface {
            opened: self.opened,
            ..Preface::default()
        }
    }

    /// The same for a run that fails here.
    pub(crate) fn refused(&self, body: Box<ErrorBody>) -> Preface {
        Preface {
            refused: Some(body),
            ..self.preface()
        }
    }

    /// Sends the first chunk of a stream, unless it was sent before.
    async fn open(&mut self, explain: &str) {
        if self.mode == RunMode::Sync || self.inherited.is_some() || self.opened {
            return;
        }
        let meta = Chunk::Meta {
            session_id: self.run.to_string(),
            resume_from_seq: None,
            meta: opening_meta(explain),
            annotations: self.annotations.clone(),
        };
        self.opened = self.emit(meta).await;
    }

    /// Waits for the media and reports progress, until the run is cancelled, times out or the server stops.
    async fn watch(
        &mut self,
        desk: &MediaPipeline,
        module: &Module,
        input: &Map<String, Value>,
    ) -> Option<Result<PreparedMedia, Box<ErrorBody>>> {
        let (sender, mut receiver) = mpsc::channel(limits::MEDIA_ITEMS_MAX + 1);
        let work = desk.prepare(module, input, move |done, total| {
            // Progress is dropped if the queue is full.
            sender.try_send((done, total)).ok();
        });
        let limit = Duration::from_millis(self.deadline_ms);
        let work = tokio::time::timeout(limit, work);
        tokio::pin!(work);
        let (stop, cancel) = (self.stop.clone(), self.live.cancel.clone());
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return None,
                () = cancel.cancelled() => {
                    return Some(Err(Box::new(ErrorBody::new(Code::E2010, "the run was cancelled"))));
                }
                Some((done, total)) = receiver.recv() => self.send_media_progress(done, total).await,
                done = &mut work => {
                    while let Ok((done, total)) = receiver.try_recv() {
                        self.send_media_progress(done, total).await;
                    }
                    return Some(match done {
                        Ok(Ok(ready)) => Ok(ready.unwrap_or_default()),
                        Ok(Err(body)) => Err(body),
                        Err(_) => Err(Box::new(self.timeout_error())),
                    });
                }
            }
        }
    }

    fn timeout_error(&self) -> ErrorBody {
        let code = match self.mode {
            RunMode::Sync => Code::E2002,
            RunMode::Stream => Code::E2011,
        };
        let allowed = self.deadline_ms;
        ErrorBody::new(code, format!("the media was not ready after {allowed} ms"))
            .detail("allowed_ms", allowed)
    }

    async fn send_media_progress(&mut self, done: usize, total: usize) {
        self.tell("media", format!("{done} of {total} inspected")).await;
    }

    async fn tell(&mut self, stage: &str, message: String) {
        // No event precedes the first chunk.
        let begun = self.opened || self.inherited.is_some();
        if self.mode == RunMode::Stream && self.progress && begun {
            self.emit(Chunk::Progress(Progress {
                percent: self.inherited.map_or(0, |sent| sent.percent),
                stage: Some(String::from(stage)),
                message: Some(message),
            }))
            .await;
        }
    }

    /// Journals a chunk, then publishes it. Returns whether it was sent: a rejected chunk is omitted; if the
    /// journal keeps rejecting, it rejects the events of the machine too, which ends the run.
    async fn emit(&mut self, chunk: Chunk) -> bool {
        let event = encode(&chunk);
        let written = self
            .sink
            .append(
                &self.live.tenant,
                self.run,
                self.offset,
                std::slice::from_ref(&event),
            )
            .await;
        if written.is_ok() {
            self.offset += 1;
            self.live.publish(vec![JournalEntry {
                offset: self.offset,
                event,
            }]);
        }
        written.is_ok()
    }
}
