//! What happens in a run before anyone is asked, when it has to wait for its turn or its input holds media: the
//! stream opens, the wait and the looks at media are told, and the run goes on with a request that carries the
//! media, or ends there.

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

use super::command::{RunMode, Warning};
use super::broadcast::RunBroadcast;
use super::machine::SentProgress;
use super::render::encode;
use super::subscription::opening_meta;
use crate::admission::{Permit, Queue};
use crate::limits;
use crate::media::{MediaPipeline, PreparedMedia};
use crate::port::{JournalEntry, Journal};

/// How a run begins that was prepared before its machine started.
#[derive(Clone, Debug, Default)]
pub struct Preface {
    /// The first chunk has been sent.
    pub(crate) opened: bool,
    /// Why nobody is to be asked.
    pub(crate) refused: Option<Box<ErrorBody>>,
    /// What was known too late for the first chunk.
    pub(crate) warnings: Vec<Warning>,
    pub(crate) media: Option<Box<MediaFacts>>,
    /// How much of the run's time it took.
    pub(crate) took_ms: u64,
}

/// What the meta of an answer says about the media that were looked at.
#[derive(Clone, Debug)]
pub(crate) struct MediaFacts {
    pub(crate) processed: Value,
    pub(crate) validation: Value,
}

/// A run's beginning, as far as it can be told and stopped.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) run: RunId,
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) live: Arc<RunBroadcast>,
    pub(crate) offset: u64,
    pub(crate) mode: RunMode,
    pub(crate) progress: bool,
    /// `_warnings`, as the first chunk carries them.
    pub(crate) annotations: Map<String, Value>,
    /// Another server has sent the first chunk already.
    pub(crate) inherited: Option<SentProgress>,
    /// This one has.
    pub(crate) opened: bool,
    pub(crate) deadline_ms: u64,
    pub(crate) stop: CancellationToken,
}

impl Opening {
    /// Makes the media of a run ready; `None` when the server stops meanwhile.
    pub(crate) async fn prepare(
        &mut self,
        desk: &MediaPipeline,
        module: &Module,
        input: &Map<String, Value>,
    ) -> Option<(Preface, PreparedMedia)> {
        let began = Instant::now();
        self.open("the media is being looked at").await;
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

    /// Waits for the turn of a run; `None` when the server stops meanwhile.
    pub(crate) async fn wait(&mut self, queue: Queue) -> Option<Result<Permit, Box<ErrorBody>>> {
        self.open("the run waits for its turn").await;
        self.tell("queue", String::from("others come first")).await;
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

    /// How the run begins behind what was said so far.
    pub(crate) fn preface(&self) -> Preface {
        Preface {
            opened: self.opened,
            ..Preface::default()
        }
    }

    /// The same for one that goes no further.
    pub(crate) fn refused(&self, body: Box<ErrorBody>) -> Preface {
        Preface {
            refused: Some(body),
            ..self.preface()
        }
    }

    /// The first chunk of a stream, unless it was sent before.
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

    /// Waits for the media, tells how far it is, and stops when nobody wants it any more.
    async fn watch(
        &mut self,
        desk: &MediaPipeline,
        module: &Module,
        input: &Map<String, Value>,
    ) -> Option<Result<PreparedMedia, Box<ErrorBody>>> {
        let (tell, mut told) = mpsc::channel(limits::MEDIA_ITEMS_MAX + 1);
        let work = desk.prepare(module, input, move |done, total| {
            // Progress that nobody takes is old progress.
            tell.try_send((done, total)).ok();
        });
        let patience = Duration::from_millis(self.deadline_ms);
        let work = tokio::time::timeout(patience, work);
        tokio::pin!(work);
        let (stop, cancel) = (self.stop.clone(), self.live.cancel.clone());
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return None,
                () = cancel.cancelled() => {
                    return Some(Err(Box::new(ErrorBody::new(Code::E2010, "the run was cancelled"))));
                }
                Some((done, total)) = told.recv() => self.tell_media(done, total).await,
                done = &mut work => {
                    while let Ok((done, total)) = told.try_recv() {
                        self.tell_media(done, total).await;
                    }
                    return Some(match done {
                        Ok(Ok(ready)) => Ok(ready.unwrap_or_default()),
                        Ok(Err(body)) => Err(body),
                        Err(_) => Err(Box::new(self.too_late())),
                    });
                }
            }
        }
    }

    fn too_late(&self) -> ErrorBody {
        let code = match self.mode {
            RunMode::Sync => Code::E2002,
            RunMode::Stream => Code::E2011,
        };
        let allowed = self.deadline_ms;
        ErrorBody::new(code, format!("the media was not ready after {allowed} ms"))
            .detail("allowed_ms", allowed)
    }

    async fn tell_media(&mut self, done: usize, total: usize) {
        self.tell("media", format!("{done} of {total} looked at")).await;
    }

    async fn tell(&mut self, stage: &str, message: String) {
        // Nothing comes before the first chunk.
        let begun = self.opened || self.inherited.is_some();
        if self.mode == RunMode::Stream && self.progress && begun {
            self.emit(Chunk::Progress(Progress {
                percent: self.inherited.map_or(0, |heard| heard.percent),
                stage: Some(String::from(stage)),
                message: Some(message),
            }))
            .await;
        }
    }

    /// Journal first, readers second. Returns whether it was sent: what a journal refuses is left out, and as long as
    /// it refuses, it will refuse the machine's events too, and the run ends there.
    async fn emit(&mut self, chunk: Chunk) -> bool {
        let event = encode(&chunk);
        let written = self
            .journal
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
