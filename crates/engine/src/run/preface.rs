//! What precedes the first attempt of a run that waits for a permit or has media in its input: the stream is
//! opened, the wait and the inspection of media are reported as progress, and the run continues with a
//! request that carries the media, or fails.

use std::time::Duration;

use module::Code;
use module::envelope::ErrorBody;
use module::stream::{Chunk, Progress};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::command::{RunMode, Warning, warnings_annotation};
use super::render::encode;
use super::subscription::opening_meta;
use crate::admission::{Permit, Queue};
use crate::launch::{RunIo, RunSpec};
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
    pub(crate) spec: &'a RunSpec,
    pub(crate) io: &'a mut RunIo,
    /// This server has sent the first chunk.
    pub(crate) opened: bool,
    pub(crate) stop: CancellationToken,
}

impl Opening<'_> {
    /// Prepares the media of a run; `None` if the server stops meanwhile.
    pub(crate) async fn prepare(&mut self, pipeline: &MediaPipeline) -> Option<(Preface, PreparedMedia)> {
        let began = Instant::now();
        self.open("inspecting media").await;
        let mut preface = self.preface();
        let watched = self.watch(pipeline).await?;
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
        let (stop, cancel) = (self.stop.clone(), self.io.live.cancel.clone());
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
        let is_stream = self.spec.command.mode == RunMode::Stream;
        if !is_stream || self.spec.sent_progress().is_some() || self.opened {
            return;
        }
        let meta = Chunk::Meta {
            session_id: self.spec.id.to_string(),
            resume_from_seq: None,
            meta: opening_meta(explain),
            annotations: warnings_annotation(&self.spec.warnings),
        };
        self.opened = self.emit(meta).await;
    }

    /// Waits for the media and reports progress, until the run is cancelled, times out or the server stops.
    async fn watch(&mut self, pipeline: &MediaPipeline) -> Option<Result<PreparedMedia, Box<ErrorBody>>> {
        let (sender, mut receiver) = mpsc::channel(limits::MEDIA_ITEMS_MAX + 1);
        let spec = self.spec;
        let work = pipeline.prepare(&spec.module, &spec.command.input, move |done, total| {
            // Progress is dropped if the queue is full.
            sender.try_send((done, total)).ok();
        });
        let limit = Duration::from_millis(spec.limit_ms());
        let work = tokio::time::timeout(limit, work);
        tokio::pin!(work);
        let (stop, cancel) = (self.stop.clone(), self.io.live.cancel.clone());
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
        let code = match self.spec.command.mode {
            RunMode::Sync => Code::E2002,
            RunMode::Stream => Code::E2011,
        };
        let allowed = self.spec.limit_ms();
        ErrorBody::new(code, format!("the media was not ready after {allowed} ms"))
            .detail("allowed_ms", allowed)
    }

    async fn send_media_progress(&mut self, done: usize, total: usize) {
        self.tell("media", format!("{done} of {total} inspected")).await;
    }

    async fn tell(&mut self, stage: &str, message: String) {
        // No event precedes the first chunk.
        let sent = self.spec.sent_progress();
        let begun = self.opened || sent.is_some();
        let command = &self.spec.command;
        if command.mode == RunMode::Stream && command.options.progress && begun {
            self.emit(Chunk::Progress(Progress {
                percent: sent.map_or(0, |sent| sent.percent),
                stage: Some(String::from(stage)),
                message: Some(message),
            }))
            .await;
        }
    }

    /// Journals a chunk, then publishes it. Returns whether it was sent: a rejected chunk is omitted; if the
    /// journal keeps rejecting, it rejects the events of the machine too, which ends the run.
    async fn emit(&mut self, chunk: Chunk) -> bool {
        let (event, io) = (encode(&chunk), &mut *self.io);
        let written = io
            .sink
            .append(
                &self.spec.tenant,
                self.spec.id,
                io.offset,
                std::slice::from_ref(&event),
            )
            .await;
        if written.is_ok() {
            io.offset += 1;
            let offset = io.offset;
            io.live.publish(vec![JournalEntry { offset, event }]);
        }
        written.is_ok()
    }
}
