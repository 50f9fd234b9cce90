//! What every handler can reach.

use std::sync::{Arc, PoisonError, RwLock};

use engine::{Engine, Tenant};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::metrics::Metrics;
use crate::route::Description;
use crate::seats::Seats;
use crate::settings::Settings;

#[derive(Clone, Debug)]
pub struct Gateway {
    pub(crate) engine: Arc<Engine>,
    /// Whose requests these are. There is one tenant until keys name others.
    pub(crate) tenant: Tenant,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) seats: Arc<Seats>,
    pub(crate) description: Arc<Description>,
    settings: Arc<RwLock<Arc<Settings>>>,
    /// The server was told to stop.
    pub(crate) stopping: CancellationToken,
    /// WebSockets outlive the requests that opened them.
    pub(crate) sockets: TaskTracker,
}

impl Gateway {
    pub fn new(engine: Arc<Engine>, settings: Settings) -> Self {
        Self {
            engine,
            tenant: Tenant::local(),
            metrics: Arc::default(),
            seats: Arc::default(),
            description: Arc::default(),
            settings: Arc::new(RwLock::new(Arc::new(settings))),
            stopping: CancellationToken::new(),
            sockets: TaskTracker::new(),
        }
    }

    /// The settings of this moment.
    pub fn settings(&self) -> Arc<Settings> {
        let settings = self.settings.read();
        settings.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From the next request on.
    pub fn replace_settings(&self, settings: Settings) {
        let mut place = self.settings.write().unwrap_or_else(PoisonError::into_inner);
        *place = Arc::new(settings);
    }

    /// Says in the figures that the configuration was read again, and whether it was taken.
    pub fn note_reload(&self, taken: bool) {
        self.metrics.reloaded(taken);
    }
}
