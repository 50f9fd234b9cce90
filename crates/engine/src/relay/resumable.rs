//! A relayed answer that somebody may come back for. Whoever speaks the caller's dialect hands in how a part
//! looks on the wire; each frame gets a number and goes into the journal before anyone sees it, and reading
//! it for the first time or again is the same call. The answer goes on for a while with nobody listening.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ir::RunId;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use super::RelayPart;
use super::driver::RelayDriver;
use crate::port::{Backend, JournalEntry, Journal, JournalError, EventKind, EncodedEvent};
use crate::run::{RunBroadcast, Subscription};

/// How an answer looks on the wire.
pub trait FrameEncoder: Send + fmt::Debug {
    /// The frames that show this part; none where it shows nothing.
    fn part(&mut self, part: RelayPart, frames: &mut Vec<String>);

    /// What stands behind the last part, if anything does. Behind an error there is no good end.
    fn end(&mut self, good: bool) -> String;
}

/// An answer that is being journaled, with its first reader.
#[derive(Debug)]
pub struct ResumableResponse {
    pub run: RunId,
    pub backend: Backend,
    pub attempts: u32,
    pub frames: Subscription,
}

/// Journals the frames of an answer until it ends.
#[derive(Debug)]
pub(super) struct FrameJournaler {
    pub(super) hands: RelayDriver,
    pub(super) render: Box<dyn FrameEncoder>,
    pub(super) journal: Arc<dyn Journal>,
    pub(super) live: Arc<RunBroadcast>,
    pub(super) audience: ReaderTracker,
    /// The server stops: leave the answer as it is; the next server ends it.
    pub(super) stop: CancellationToken,
    /// Where the journal ends.
    pub(super) offset: u64,
}

/// Who listens, and since when nobody does.
#[derive(Debug)]
pub(super) struct ReaderTracker {
    live: Arc<RunBroadcast>,
    alone_since: Option<Instant>,
    grace: Duration,
}

impl ReaderTracker {
    /// Nobody is there yet, and somebody is about to come.
    pub(super) fn new(live: Arc<RunBroadcast>, grace: Duration) -> Self {
        Self {
            live,
            alone_since: Some(Instant::now()),
            grace,
        }
    }

    /// Completes when nobody has listened for too long.
    async fn abandoned(&mut self) {
        loop {
            let patience = self.alone_since.map(|since| since + self.grace);
            tokio::select! {
                biased;
                here = self.live.wait_readers_changed() => self.alone_since = (!here).then(Instant::now),
                () = until(patience) => return,
            }
        }
    }
}

impl FrameJournaler {
    pub(super) async fn drive(mut self) {
        let mut parts = Vec::new();
        loop {
            let more = tokio::select! {
                biased;
                () = self.stop.cancelled() => break,
                () = self.live.cancel.cancelled() => false,
                () = self.audience.abandoned() => false,
                more = self.hands.next_parts(&mut parts) => more,
            };
            let kept = match more {
                true => self.append(&mut parts).await,
                false => self.finish().await,
            };
            if let Err(error) = &kept {
                self.log_journal_error(error);
            }
            if !more || kept.is_err() {
                break;
            }
        }
        self.live.close();
    }

    async fn append(&mut self, parts: &mut Vec<RelayPart>) -> Result<(), JournalError> {
        let mut frames = Vec::new();
        for part in parts.drain(..) {
            self.render.part(part, &mut frames);
        }
        if frames.is_empty() {
            return Ok(());
        }
        // Every event before the last is a frame, so a frame's number is its place.
        let numbered = (self.offset + 1..).zip(frames);
        let rendered = numbered.map(|(seq, body)| EncodedEvent {
            kind: EventKind::Chunk,
            seq: Some(seq),
            body: Arc::from(body),
        });
        let rendered: Vec<EncodedEvent> = rendered.collect();
        let (tenant, run) = (&self.live.tenant, self.hands.run);
        self.journal.append(tenant, run, self.offset, &rendered).await?;
        self.publish(rendered);
        Ok(())
    }

    async fn finish(&mut self) -> Result<(), JournalError> {
        self.hands.cancel();
        let good = self.hands.machine.failure().is_none();
        let last = vec![EncodedEvent {
            kind: if good { EventKind::Final } else { EventKind::Error },
            seq: None,
            body: Arc::from(self.render.end(good)),
        }];
        let Some(end) = self.hands.take_end() else {
            return Ok(());
        };
        let (tenant, run) = (&self.live.tenant, self.hands.run);
        self.journal.finish(tenant, run, self.offset, &last, &end).await?;
        self.publish(last);
        Ok(())
    }

    fn publish(&mut self, frames: Vec<EncodedEvent>) {
        let entries = (self.offset + 1..).zip(frames);
        let entries: Vec<JournalEntry> = entries.map(|(offset, event)| JournalEntry { offset, event }).collect();
        self.offset = entries.last().map_or(self.offset, |entry| entry.offset);
        self.live.publish(entries);
    }

    /// What is not in the journal must not be seen; readers find that there is no more.
    fn log_journal_error(&self, cause: &JournalError) {
        let run = self.hands.run;
        match cause {
            JournalError::Fenced(_) | JournalError::Ended(_) => {
                warn!(%run, "somebody else has ended a relayed answer");
            }
            cause => error!(%run, error = %cause, "the journal refused a relayed answer"),
        }
    }
}

async fn until(end: Option<Instant>) {
    match end {
        Some(end) => tokio::time::sleep_until(end).await,
        None => std::future::pending().await,
    }
}
