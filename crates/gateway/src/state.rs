//! What every handler can reach.

use std::ops::Deref;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use engine::Engine;
use engine::port::Archive;
use module::Code;
use module::envelope::ErrorBody;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::auth::{Auth, Tickets};
use crate::limit::{Capacity, Limiter};
use crate::limits;
use crate::metrics::Metrics;
use crate::response::ApiError;
use crate::route::Description;
use crate::stream_limit::StreamLimiter;
use crate::settings::Settings;

/// One handle: every request passes it on a few times.
#[derive(Clone, Debug)]
pub struct Gateway(Arc<GatewayInner>);

#[derive(Debug)]
pub struct GatewayInner {
    pub(crate) engine: Arc<Engine>,
    auth: RwLock<Arc<Auth>>,
    pub(crate) tickets: Arc<Tickets>,
    pub(crate) limiter: Arc<Limiter>,
    /// Where one can look back; a server without a journal of its own has none.
    archive: OnceLock<Arc<dyn Archive>>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) stream_limiter: Arc<StreamLimiter>,
    pub(crate) description: Arc<Description>,
    settings: RwLock<Arc<Settings>>,
    /// The server was told to stop.
    pub(crate) stopping: CancellationToken,
    /// Runs are done or left to the next server; nothing more will be said to anyone.
    pub(crate) ended: CancellationToken,
    /// WebSockets, and what watches for sessions of MCP, outlive the requests that opened them.
    pub(crate) sockets: TaskTracker,
    /// Forms with files that lie here at a time.
    pub(crate) multipart_permits: Arc<Semaphore>,
    /// Whole answers that are kept for callers who will ask again.
    pub(crate) detached_runs: TaskTracker,
}

impl Deref for Gateway {
    type Target = GatewayInner;

    fn deref(&self) -> &GatewayInner {
        &self.0
    }
}

impl Gateway {
    /// For anyone who can reach it, until [`Gateway::with_auth`] says otherwise.
    pub fn new(engine: Arc<Engine>, settings: Settings) -> Self {
        Self(Arc::new(GatewayInner {
            auth: RwLock::new(Arc::new(Auth::open(engine.clock().clone()))),
            tickets: Arc::default(),
            limiter: Arc::new(Limiter::new(Capacity::default())),
            archive: OnceLock::new(),
            engine,
            metrics: Arc::default(),
            stream_limiter: Arc::default(),
            description: Arc::default(),
            settings: RwLock::new(Arc::new(settings)),
            stopping: CancellationToken::new(),
            ended: CancellationToken::new(),
            sockets: TaskTracker::new(),
            multipart_permits: Arc::new(Semaphore::new(limits::FORMS_MAX)),
            detached_runs: TaskTracker::new(),
        }))
    }

    #[must_use]
    pub fn with_auth(self, auth: Auth) -> Self {
        self.replace_auth(auth);
        self
    }

    /// From the next request on, and from the next message of those who have a WebSocket.
    pub fn replace_auth(&self, auth: Auth) {
        let mut place = self.auth.write().unwrap_or_else(PoisonError::into_inner);
        auth.inherit_caches(&place);
        *place = Arc::new(auth);
    }

    /// How callers are known at this moment.
    pub(crate) fn auth(&self) -> Arc<Auth> {
        self.auth.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    #[must_use]
    pub fn with_archive(self, archive: Arc<dyn Archive>) -> Self {
        // Whoever was first stays.
        self.archive.set(archive).ok();
        self
    }

    #[must_use]
    pub fn with_capacity(self, capacity: Capacity) -> Self {
        self.replace_capacity(capacity);
        self
    }

    /// From now on; runs in progress keep their places.
    pub fn replace_capacity(&self, capacity: Capacity) {
        self.limiter.resize(capacity);
    }

    pub(crate) fn archive(&self) -> Result<&Arc<dyn Archive>, ApiError> {
        let archive = self.archive.get();
        archive.ok_or_else(|| ApiError::new(ErrorBody::new(Code::E4012, "this server keeps no journal")))
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
