//! An answer on its way to whoever asked.

use std::future::poll_fn;
use std::task::{Context, Poll};

use ir::{Error, RunId, Usage};

use super::RelayPart;
use super::driver::RelayDriver;
use crate::port::Backend;

/// Somebody has begun to answer. Dropping this hangs up on the back-end at once; what was used until then
/// is accounted for.
#[derive(Debug)]
pub struct RelayResponse {
    pub run: RunId,
    /// Who answers; another one where the first was lost in the middle.
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

    /// How many calls it took until now.
    pub fn attempts(&self) -> u32 {
        self.hands.machine.attempts()
    }

    /// What the answer used, as its back-end says. Known once there are no more parts; for an answer that
    /// was not streamed, from the beginning.
    pub fn usage(&self) -> Option<&Usage> {
        self.hands.machine.usage()
    }

    /// Why the answer did not come to a good end; known once there are no more parts.
    pub fn failure(&self) -> Option<&Error> {
        self.hands.machine.failure()
    }

    /// The next part; `None` when there are no more.
    pub async fn next(&mut self) -> Option<RelayPart> {
        poll_fn(|context| self.poll_next(context)).await
    }

    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<RelayPart>> {
        self.hands.poll_part(context)
    }

    /// Waits for a part and takes what else is ready, so that it can go out in one write. Returns whether
    /// there was any.
    pub async fn next_parts(&mut self, parts: &mut Vec<RelayPart>) -> bool {
        self.hands.next_parts(parts).await
    }

    pub fn poll_parts(&mut self, context: &mut Context<'_>, parts: &mut Vec<RelayPart>) -> Poll<bool> {
        self.hands.poll_parts(context, parts)
    }
}
