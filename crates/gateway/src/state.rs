//! Shared state of all handlers.

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
use crate::schema_threads::SchemaThreads;
use crate::settings::Settings;
use crate::stream_limit::StreamLimiter;

/// A single `Arc`, because every request clones it several times.
#[derive(Clone, Debug)]
pub struct Gateway(Arc<GatewayInner>);

#[derive(Debug)]
pub struct GatewayInner {
    pub(crate) engine: Arc<Engine>,
    auth: RwLock<Arc<Auth>>,
    pub(crate) tickets: Arc<Tickets>,
    pub(crate) limiter: Arc<Limiter>,
    /// Past runs; absent without a journal.
    archive: OnceLock<Arc<dyn Archive>>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) stream_limiter: Arc<StreamLimiter>,
    pub(crate) description: Arc<Description>,
    settings: RwLock<Arc<Settings>>,
    /// Shutdown was requested.
    pub(crate) stopping: CancellationToken,
    /// Runs have ended or are left for recovery; no more events are sent.
    pub(crate) ended: CancellationToken,
    /// WebSockets and MCP session watchers, which outlive the requests that opened them.
    pub(crate) sockets: TaskTracker,
    /// Permits for multipart forms in memory.
    pub(crate) multipart_permits: Arc<Semaphore>,
    /// Threads for the schemas of requests.
    pub(crate) schema_threads: SchemaThreads,
    /// Runs whose client may disconnect and request the response again.
    pub(crate) detached_runs: TaskTracker,
}

impl Deref for Gateway {
    type Target = GatewayInner;

    fn deref(&self) -> &GatewayInner {
        &self.0
    }
}

impl Gateway {
    /// Without authentication, until [`Gateway::with_auth`] is called.
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
            schema_threads: SchemaThreads::new(),
            detached_runs: TaskTracker::new(),
        }))
    }

    #[must_use]
    pub fn with_auth(self, auth: Auth) -> Self {
        self.replace_auth(auth);
        self
    }

    /// Applies from the next request, and from the next message on open WebSockets.
    pub fn replace_auth(&self, auth: Auth) {
        let mut place = self.auth.write().unwrap_or_else(PoisonError::into_inner);
        auth.inherit_caches(&place);
        *place = Arc::new(auth);
    }

    /// The current authentication.
    pub(crate) fn auth(&self) -> Arc<Auth> {
        self.auth.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    #[must_use]
    pub fn with_archive(self, archive: Arc<dyn Archive>) -> Self {
        // The first archive is kept.
        self.archive.set(archive).ok();
        self
    }

    #[must_use]
    pub fn with_capacity(self, capacity: Capacity) -> Self {
        self.replace_capacity(capacity);
        self
    }

    /// Applies immediately; running runs keep their permits.
    pub fn replace_capacity(&self, capacity: Capacity) {
        self.limiter.resize(capacity);
    }

    pub(crate) fn archive(&self) -> Result<&Arc<dyn Archive>, ApiError> {
        let archive = self.archive.get();
        archive.ok_or_else(|| ApiError::new(ErrorBody::new(Code::E4012, "this server has no journal")))
    }

    /// The current settings.
    pub fn settings(&self) -> Arc<Settings> {
        let settings = self.settings.read();
        settings.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Applies from the next request.
    pub fn replace_settings(&self, settings: Settings) {
        let mut place = self.settings.write().unwrap_or_else(PoisonError::into_inner);
        *place = Arc::new(settings);
    }

    /// Counts a reload of the configuration and whether it succeeded.
    pub fn note_reload(&self, taken: bool) {
        self.metrics.reloaded(taken);
    }
}
