//! A response that is being relayed.

use std::future::poll_fn;
use std::task::{Context, Poll};

use ir::{Error, RunId, Usage};

use super::RelayPart;
use super::driver::RelayDriver;
use crate::port::Backend;

/// The response of a back-end that has started to answer. Dropping it cancels the upstream call at once;
/// usage up to that point is recorded.
#[derive(Debug)]
pub struct RelayResponse {
    pub run: RunId,
    /// The back-end that answers; changes on a failover in mid-stream.
    pub backend: Backend,
    hands: RelayDriver,
}

impl RelayResponse {
    pub(super) fn new(hands: RelayDriver, backend: Backend) -> Self {
        Self {
            run: hands.run,
            backend,
            hands,
        }
    }

    /// Attempts so far.
    pub fn attempts(&self) -> u32 {
        self.hands.machine.attempts()
    }

    /// Usage as reported by the back-end. Available after the last part; for a response that is not streamed,
    /// from the start.
    pub fn usage(&self) -> Option<&Usage> {
        self.hands.machine.usage()
    }

    /// The error that ended the response; available after the last part.
    pub fn failure(&self) -> Option<&Error> {
        self.hands.machine.failure()
    }

    /// The next part; `None` at the end.
    pub async fn next(&mut self) -> Option<RelayPart> {
        poll_fn(|context| self.poll_next(context)).await
    }

    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<RelayPart>> {
        self.hands.poll_part(context)
    }

    /// Waits for a part and drains all that are ready, so that they are sent in one write. Returns whether
    /// there was any.
    pub async fn next_parts(&mut self, parts: &mut Vec<RelayPart>) -> bool {
        self.hands.next_parts(parts).await
    }

    pub fn poll_parts(&mut self, context: &mut Context<'_>, parts: &mut Vec<RelayPart>) -> Poll<bool> {
        self.hands.poll_parts(context, parts)
    }
}
