//! A relayed response that can be resumed. The caller of this module supplies the encoder from parts to wire
//! frames; each frame is numbered and journaled before it is published, and a first read and a resumed read
//! are the same call. The response continues for the grace period without readers.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ir::RunId;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use super::RelayPart;
use super::driver::RelayDriver;
use crate::port::{Backend, EncodedEvent, EventKind, Journal, JournalEntry, JournalError};
use crate::run::{RunBroadcast, Subscription};

/// Encodes a response in a wire format.
pub trait FrameEncoder: Send + fmt::Debug {
    /// Appends the frames of this part; none if the part has no wire form.
    fn part(&mut self, part: RelayPart, frames: &mut Vec<String>);

    /// The final frame; may be empty. `good` is false after an error, which has no successful end.
    fn end(&mut self, good: bool) -> String;
}

/// A response that is being journaled, with its first reader.
#[derive(Debug)]
pub struct ResumableResponse {
    pub run: RunId,
    pub backend: Backend,
    pub attempts: u32,
    pub frames: Subscription,
}

/// Journals the frames of a response until it ends.
#[derive(Debug)]
pub(super) struct FrameJournaler {
    pub(super) hands: RelayDriver,
    pub(super) render: Box<dyn FrameEncoder>,
    pub(super) journal: Arc<dyn Journal>,
    pub(super) live: Arc<RunBroadcast>,
    pub(super) audience: ReaderTracker,
    /// Server shutdown: the response is left open, and the next server ends it.
    pub(super) stop: CancellationToken,
    /// Last journaled offset.
    pub(super) offset: u64,
}

/// Whether there are readers, and since when there are none.
#[derive(Debug)]
pub(super) struct ReaderTracker {
    live: Arc<RunBroadcast>,
    alone_since: Option<Instant>,
    grace: Duration,
}

impl ReaderTracker {
    /// Starts without readers; the grace period starts now.
    pub(super) fn new(live: Arc<RunBroadcast>, grace: Duration) -> Self {
        Self {
            live,
            alone_since: Some(Instant::now()),
            grace,
        }
    }

    /// Completes when there was no reader for the grace period.
    async fn abandoned(&mut self) {
        loop {
            let deadline = self.alone_since.map(|since| since + self.grace);
            tokio::select! {
                biased;
                has_readers = self.live.wait_readers_changed() => self.alone_since = (!has_readers).then(Instant::now),
                () = until(deadline) => return,
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
            let journaled = match more {
                true => self.append(&mut parts).await,
                false => self.finish().await,
            };
            if let Err(error) = &journaled {
                self.log_journal_error(error);
            }
            if !more || journaled.is_err() {
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
        // Every event before the last is a frame, so the frame number equals the offset.
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
        let entries: Vec<JournalEntry> = entries
            .map(|(offset, event)| JournalEntry { offset, event })
            .collect();
        self.offset = entries.last().map_or(self.offset, |entry| entry.offset);
        self.live.publish(entries);
    }

    /// A frame that is not journaled is never published; readers see the end of the stream.
    fn log_journal_error(&self, cause: &JournalError) {
        let run = self.hands.run;
        match cause {
            JournalError::Fenced(_) | JournalError::Ended(_) => {
                warn!(%run, "relayed response was ended by another writer");
            }
            cause => error!(%run, error = %cause, "the journal rejected a relayed response"),
        }
    }
}

async fn until(end: Option<Instant>) {
    match end {
        Some(end) => tokio::time::sleep_until(end).await,
        None => std::future::pending().await,
    }
}
