//! Runs and relayed calls that are under way beside one another. Those that come to the same point go on from there
//! together: the code of the next stretch is fetched once for all of them, what they write down shares a write, and
//! whoever they ask is seldom asleep. Whoever is alone waits for nobody. This must not know what anyone does.

use std::sync::{Arc, Weak};

use tokio_util::task::TaskTracker;

/// All of an engine's.
#[derive(Clone, Debug)]
pub(crate) struct Crowd {
    runs: TaskTracker,
    relays: Weak<()>,
}

impl Crowd {
    /// Of runs, one task each, and of relayed calls, each of which holds `relays`, as their engine does.
    pub(crate) fn new(runs: &TaskTracker, relays: &Arc<()>) -> Self {
        Self {
            runs: runs.clone(),
            relays: Arc::downgrade(relays),
        }
    }

    /// Lets everyone who can go on come as far as this, if there is anyone else.
    pub(crate) async fn gather(&self) {
        if self.is_there() {
            tokio::task::yield_now().await;
        }
    }

    /// Whether there are more than one.
    pub(crate) fn is_there(&self) -> bool {
        let relays = self.relays.strong_count().saturating_sub(1);
        self.runs.len() + relays > 1
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures::FutureExt;
    use tokio_util::task::TaskTracker;

    use super::Crowd;

    /// Whether one who comes here goes on at once.
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
    async fn only_whoever_is_not_alone_waits_for_others() {
        let (runs, relays) = (TaskTracker::new(), Arc::new(()));
        let crowd = Crowd::new(&runs, &relays);
        assert!(passes(&crowd).await);
        let first = runs.token();
        assert!(passes(&crowd).await);
        let call = relays.clone();
        assert!(!passes(&crowd).await);
        drop(first);
        assert!(passes(&crowd).await);
        let second = runs.token();
        assert!(!passes(&crowd).await);
        drop((call, second));
        assert!(passes(&crowd).await);
    }
}
