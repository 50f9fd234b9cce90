//! Runs and relayed calls in flight. A task that reaches a gathering point yields if others are in flight, so
//! that their next steps run back to back and share cached code, journal writes and active peers. A single
//! task does not yield. This must not know what the tasks do.

use tokio_util::task::TaskTracker;

/// All of an engine's.
#[derive(Clone, Debug, Default)]
pub(crate) struct Crowd {
    /// One task each.
    pub(crate) runs: TaskTracker,
    /// One token each: relayed calls run in the tasks of their callers.
    pub(crate) relays: TaskTracker,
}

impl Crowd {
    /// Yields once if other runs or relayed calls are in flight.
    pub(crate) async fn gather(&self) {
        if self.is_there() {
            tokio::task::yield_now().await;
        }
    }

    /// Whether there are more than one.
    pub(crate) fn is_there(&self) -> bool {
        self.runs.len() + self.relays.len() > 1
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::Crowd;

    /// Whether a task passes without yielding.
    async fn passes(crowd: &Crowd) -> bool {
        let gathering = crowd.gather();
        let mut gathering = std::pin::pin!(gathering);
        match gathering.as_mut().now_or_never() {
            Some(()) => true,
            None => {
                gathering.await;
                false
            }
        }
    }

    #[tokio::test]
    async fn yields_only_when_contended() {
        let crowd = Crowd::default();
        let (runs, relays) = (&crowd.runs, &crowd.relays);
        assert!(passes(&crowd).await);
        let first = runs.token();
        assert!(passes(&crowd).await);
        let call = relays.token();
        assert!(!passes(&crowd).await);
        drop(first);
        assert!(passes(&crowd).await);
        let second = runs.token();
        assert!(!passes(&crowd).await);
        drop((call, second));
        assert!(passes(&crowd).await);
    }
}
