//! Runs and relayed calls that are under way beside one another. Those that come to the same point go on from there
//! together: the code of the next stretch is fetched once for all of them, what they write down shares a write, and
//! whoever they ask is seldom asleep. Whoever is alone waits for nobody. This must not know what anyone does.

use tokio_util::task::TaskTracker;

/// All of an engine's.
#[derive(Clone, Debug, Default)]
pub(crate) struct Crowd {
    /// One task each.
    pub(crate) runs: TaskTracker,
    /// One token each: relayed calls live in the tasks of whoever wants their answers.
    pub(crate) relays: TaskTracker,
}

impl Crowd {
    /// Lets everyone who can go on come as far as this, if there is anyone else.
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
