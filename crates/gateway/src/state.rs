//! The state of a server and its configuration. A reload replaces the configuration as a whole; a request
//! takes one snapshot of it at its start.

use std::ops::Deref;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::Extensions;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use engine::port::Archive;
use engine::{Engine, EngineConfig, Modules};
use module::Code;
use module::envelope::ErrorBody;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::auth::{Auth, Tickets};
use crate::limit::{Capacity, Limiter};
use crate::limits;
use crate::metrics::Metrics;
use crate::response::ApiError;
use crate::route::Description;
use crate::settings::Settings;
use crate::stream_limit::{ClientStreams, StreamLimiter, StreamPermit};

/// A handle with one configuration; the state of the server is shared by all handles. What outlives a request
/// gets the latest configuration from [`Gateway::current`].
#[derive(Clone, Debug)]
pub struct Gateway {
    shared: Arc<GatewayState>,
    config: Arc<GatewayConfig>,
}

/// Everything a reload replaces.
#[derive(Clone, Debug)]
pub(crate) struct GatewayConfig {
    auth: Arc<Auth>,
    settings: Arc<Settings>,
    engine: Engine,
}

#[derive(Debug)]
pub struct GatewayState {
    latest: watch::Sender<Arc<GatewayConfig>>,
    pub(crate) tickets: Arc<Tickets>,
    pub(crate) limiter: Arc<Limiter>,
    /// Past runs.
    pub(crate) archive: Arc<dyn Archive>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) stream_limiter: Arc<StreamLimiter>,
    pub(crate) description: Arc<Description>,
    /// Shutdown was requested.
    pub(crate) stopping: CancellationToken,
    /// Runs have ended or are left for recovery; no more events are sent.
    pub(crate) ended: CancellationToken,
    /// WebSockets and MCP session watchers, which outlive the requests that opened them.
    pub(crate) sockets: TaskTracker,
    /// Permits for multipart forms in memory.
    pub(crate) multipart_permits: Arc<Semaphore>,
    /// Runs whose client may disconnect and request the response again.
    pub(crate) detached_runs: TaskTracker,
}

impl Deref for Gateway {
    type Target = GatewayState;

    fn deref(&self) -> &GatewayState {
        &self.shared
    }
}

impl Gateway {
    /// Without authentication, until [`Gateway::with_auth`] is called.
    pub fn new(engine: Engine, archive: Arc<dyn Archive>, settings: Settings) -> Self {
        let config = Arc::new(GatewayConfig {
            auth: Arc::new(Auth::open(engine.clock().clone())),
            settings: Arc::new(settings),
            engine,
        });
        let shared = GatewayState {
            latest: watch::Sender::new(config.clone()),
            tickets: Arc::default(),
            limiter: Arc::new(Limiter::new(Capacity::default())),
            archive,
            metrics: Arc::default(),
            stream_limiter: Arc::default(),
            description: Arc::default(),
            stopping: CancellationToken::new(),
            ended: CancellationToken::new(),
            sockets: TaskTracker::new(),
            multipart_permits: Arc::new(Semaphore::new(limits::FORMS_MAX)),
            detached_runs: TaskTracker::new(),
        };
        Self {
            shared: Arc::new(shared),
            config,
        }
    }

    #[must_use]
    pub fn with_auth(self, auth: Auth) -> Self {
        self.update(|config| config.auth = Arc::new(auth)).current()
    }

    #[must_use]
    pub fn with_capacity(self, capacity: Capacity) -> Self {
        self.limiter.resize(capacity);
        self
    }

    /// A handle with the latest configuration.
    #[must_use]
    pub fn current(&self) -> Self {
        Self {
            shared: self.shared.clone(),
            config: self.latest.borrow().clone(),
        }
    }

    /// Replaces the configuration, except the modules: requests that start from now on use all of it, earlier
    /// ones none of it. Without `auth`, the authentication is kept.
    pub fn replace_config(
        &self,
        auth: Option<Auth>,
        settings: Settings,
        capacity: Capacity,
        engine: impl FnOnce(&EngineConfig) -> EngineConfig,
    ) {
        self.update(|config| {
            if let Some(auth) = auth {
                auth.inherit_caches(&config.auth);
                config.auth = Arc::new(auth);
            }
            config.settings = Arc::new(settings);
            config.engine = config.engine.with_config(engine(config.engine.config()));
            self.limiter.resize(capacity);
        });
    }

    /// Applies from the next request.
    pub fn replace_modules(&self, modules: Modules) {
        self.update(|config| {
            let changed = EngineConfig {
                modules: Arc::new(modules),
                ..config.engine.config().clone()
            };
            config.engine = config.engine.with_config(changed);
        });
    }

    fn update(&self, change: impl FnOnce(&mut GatewayConfig)) -> &Self {
        self.latest.send_modify(|config| change(Arc::make_mut(config)));
        self
    }

    /// The snapshot that the middleware took when the request arrived.
    pub(crate) fn of(extensions: &Extensions) -> Result<Self, ApiError> {
        let gateway = extensions.get::<Self>().cloned();
        gateway.ok_or_else(|| ApiError::new(ErrorBody::new(Code::E4000, "the request has no configuration")))
    }

    /// A permit for one more stream of this client.
    pub(crate) fn stream_permit(&self, client: &ClientStreams) -> Result<StreamPermit, ApiError> {
        self.stream_limiter
            .acquire(client, self.settings().streams_per_client_max)
    }

    pub fn engine(&self) -> &Engine {
        &self.config.engine
    }

    pub(crate) fn auth(&self) -> &Auth {
        &self.config.auth
    }

    pub(crate) fn settings(&self) -> &Arc<Settings> {
        &self.config.settings
    }

    /// The next replacement of these modules.
    pub(crate) async fn modules_after(&self, seen: &Arc<Modules>) -> Arc<Modules> {
        let mut latest = self.latest.subscribe();
        let changed = latest
            .wait_for(|config| !Arc::ptr_eq(config.engine.modules(), seen))
            .await;
        match changed {
            Ok(config) => config.engine.modules().clone(),
            // Not reached: this handle keeps the sender.
            Err(_) => seen.clone(),
        }
    }

    /// Counts a reload of the configuration and whether it succeeded.
    pub fn note_reload(&self, taken: bool) {
        self.metrics.reloaded(taken);
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Gateway {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Response> {
        Self::of(&parts.extensions).map_err(IntoResponse::into_response)
    }
}
