//! Runs that are under way beside one another. Those that come to the same point go on from there together: the code of
//! the next stretch is fetched once for all of them, what they write shares a write, and whoever they wake is woken once.
//! A run that is alone waits for nobody. This must not know what a run does.

use tokio_util::task::TaskTracker;

/// All the runs of an engine.
#[derive(Clone, Debug)]
pub(crate) struct Crowd(TaskTracker);

impl Crowd {
    /// Of those whose tasks are tracked here.
    pub(crate) fn of(tasks: &TaskTracker) -> Self {
        Self(tasks.clone())
    }

    /// Lets everyone who can go on come this far first, if there is anyone else.
    pub(crate) async fn gather(&self) {
        if self.0.len() > 1 {
            tokio::task::yield_now().await;
        }
    }
}
