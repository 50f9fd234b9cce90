//! The engine: runs of modules (`Runs`), relayed calls (`Relay`) and the recovery of what a killed server left
//! unfinished (`Recovery`), behind one handle. An [`Engine`] has one configuration; the runs and the relayed calls
//! are shared by all handles. It only delegates.

use std::sync::Arc;

use ir::{Request, RunId};
use module::envelope::ErrorBody;
use tenancy::Tenant;

use crate::admission::{Admission, Repeatable};
use crate::config::EngineConfig;
use crate::error::Error;
use crate::fleet::Fleet;
use crate::gate::GateAction;
use crate::media::MediaPipeline;
use crate::modules::Modules;
use crate::port::{Clock, EncodedEvent, Journal, RunRecord};
use crate::preflight::check_run;
use crate::recovery::Recovery;
use crate::relay::{
    FrameEncoder, Relay, RelayFailure, RelayRequest, RelayResponse, RelayedUnary, ResumableResponse,
};
use crate::run::{ReadFrom, RunRequest, StartedRun, Subscription, Trace, TraceSink};
use crate::runs::Runs;
use crate::schema_threads::SchemaThreads;
use crate::settings::Settings;
use crate::tokens::{TokenCount, count_request};

/// The adapters that an engine uses.
#[derive(Clone, Debug)]
pub struct Ports {
    pub fleet: Arc<Fleet>,
    pub journal: Arc<dyn Journal>,
    pub clock: Arc<dyn Clock>,
}

/// A handle: clones share the runs, and each has the configuration it was made with.
#[derive(Clone, Debug)]
pub struct Engine {
    config: Arc<EngineConfig>,
    runs: Runs,
    relay: Relay,
}

impl Engine {
    pub fn new(ports: Ports, settings: Settings, modules: Modules) -> Self {
        let config = EngineConfig {
            settings: Arc::new(settings),
            modules: Arc::new(modules),
            fleet: ports.fleet,
            media: MediaPipeline::default(),
        };
        let runs = Runs::new(ports.journal, ports.clock);
        Self {
            config: Arc::new(config),
            relay: Relay::new(runs.clone()),
            runs,
        }
    }

    /// Sets the media pipeline. Without one, nothing is fetched and no file is read.
    #[must_use]
    pub fn with_media(mut self, media: MediaPipeline) -> Self {
        Arc::make_mut(&mut self.config).media = media;
        self
    }

    /// A handle with another configuration. Runs in progress keep the one they started with.
    #[must_use]
    pub fn with_config(&self, config: EngineConfig) -> Self {
        Self {
            config: Arc::new(config),
            ..self.clone()
        }
    }

    pub fn config(&self) -> &EngineConfig {
        &self.config
    }

    /// Whether a complete, valid answer of this module may still be replaced by another back-end's answer.
    pub fn may_rerun(&self, module: &str) -> bool {
        let rule = self.config.settings.gates.for_module(module);
        rule.is_some_and(|rule| matches!(rule.action, GateAction::Rerun { .. }))
    }

    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.runs.clock
    }

    pub fn modules(&self) -> &Arc<Modules> {
        &self.config.modules
    }

    /// The back-ends.
    pub fn fleet(&self) -> &Arc<Fleet> {
        &self.config.fleet
    }

    pub fn media(&self) -> &MediaPipeline {
        &self.config.media
    }

    /// Sets the receiver for the traces of runs that end from now on. Only the first one set is used.
    pub fn set_trace_sink(&self, witness: TraceSink) {
        self.runs.traces.set_sink(witness);
    }

    /// The threads on which schemas are compiled and applied.
    pub fn schema_threads(&self) -> &SchemaThreads {
        &self.runs.schema_threads
    }

    /// How many runs and relayed calls are in progress.
    pub fn running(&self) -> usize {
        self.runs.count() + self.relay.count()
    }

    /// Starts a run and subscribes to it. An input that the module rejects starts nothing; a request with an
    /// idempotency key that has started a run already subscribes to that run.
    pub async fn start(&self, tenant: &Tenant, request: RunRequest) -> Result<StartedRun, Error> {
        let request = self.check_run(request).await.map_err(Error::Input)?;
        let running = self.running();
        if running >= self.config.settings.runs_max {
            return Err(Error::TooManyRuns(running));
        }
        self.runs.start(&self.config, tenant, request).await
    }

    /// Checks a run before it starts, on a thread for schemas.
    async fn check_run(&self, request: RunRequest) -> Result<RunRequest, Box<ErrorBody>> {
        let config = self.config.clone();
        let work = move || check_run(request, &config.modules, &config.fleet);
        self.schema_threads().check(work).await
    }

    /// Subscribes to the run that the same request has already started, so that the caller needs no permit
    /// for a new one; [`Error::DuplicateRequest`] if the key belongs to another request.
    pub async fn replay(
        &self,
        tenant: &Tenant,
        client: &str,
        repeatable: &Repeatable,
    ) -> Result<Option<StartedRun>, Error> {
        self.runs.replay(tenant, client, repeatable).await
    }

    /// Reads a run, from its start or from a resume point.
    pub async fn subscribe(
        &self,
        tenant: &Tenant,
        run: RunId,
        from: ReadFrom,
    ) -> Result<Subscription, Error> {
        self.runs.subscribe(tenant, run, from).await
    }

    /// Cancels a run in progress. A run that has ended is not changed; one that this server does not own is
    /// [`Error::NotOwned`].
    pub async fn cancel(&self, tenant: &Tenant, run: RunId) -> Result<(), Error> {
        self.runs.cancel(tenant, run).await
    }

    /// The trace of a run that has ended, as long as the trace store has it.
    pub fn trace(&self, tenant: &Tenant, run: RunId) -> Option<Arc<Trace>> {
        self.runs.traces.get(tenant, run)
    }

    pub async fn find(&self, tenant: &Tenant, run: RunId) -> Result<Option<RunRecord>, Error> {
        self.runs.find(tenant, run).await
    }

    /// The terminal event of a run that has ended.
    pub async fn last(&self, tenant: &Tenant, row: &RunRecord) -> Result<Option<EncodedEvent>, Error> {
        self.runs.last(tenant, row).await
    }

    /// Checks that the journal can be read.
    pub async fn check_journal(&self) -> Result<(), Error> {
        self.runs.check_journal().await
    }

    /// Relays a chat request. Resolves when a back-end has produced output, or with the error if none could
    /// answer; a response that is not streamed is complete by then. Dropping the future or the returned
    /// response cancels the upstream calls.
    pub async fn relay(
        &self,
        tenant: &Tenant,
        call: RelayRequest,
        admission: Admission,
    ) -> Result<RelayResponse, Box<RelayFailure>> {
        self.relay.relay(&self.config, tenant, call, admission).await
    }

    /// Like [`Self::relay`], for a caller that may reconnect: frames are journaled before they are published.
    /// Dropping the reader cancels nothing; the response continues for the grace period.
    pub async fn relay_resumable(
        &self,
        tenant: &Tenant,
        call: RelayRequest,
        admission: Admission,
        render: Box<dyn FrameEncoder>,
    ) -> Result<ResumableResponse, Box<RelayFailure>> {
        let config = &self.config;
        self.relay
            .relay_resumable(config, tenant, call, admission, render)
            .await
    }

    /// Performs a unary operation. Media that is refused fails the call before any request is sent and before
    /// anything is journaled.
    pub async fn call(
        &self,
        tenant: &Tenant,
        call: RelayRequest,
        admission: Admission,
    ) -> Result<RelayedUnary, Box<RelayFailure>> {
        self.relay.call(&self.config, tenant, call, admission).await
    }

    /// Token count of a request for the back-end that would answer it: the vendor's count, the tokenizer's
    /// count of the texts, or an estimate.
    pub async fn count_tokens(&self, request: Arc<Request>) -> TokenCount {
        count_request(&self.config, self.runs.monotonic_ms(), request).await
    }

    /// Recovers every unfinished run: reruns it where that is safe, closes it otherwise. To be called once,
    /// before the first request is served.
    pub async fn recover(&self) -> Result<(), Error> {
        Recovery::new(&self.config, &self.runs).recover().await
    }

    /// Returns when no run and no relayed call is in progress.
    pub async fn drain(&self) {
        tokio::join!(self.runs.drained(), self.relay.drained());
    }

    /// Stops the tasks of runs, leaves the runs for recovery, and returns when the tasks have ended. Relayed
    /// calls end with the tasks of their callers.
    pub async fn stop(&self) {
        self.runs.stop().await;
    }

    /// Returns when no relayed call is in progress; by then all of them are journaled.
    pub async fn relays_drained(&self) {
        self.relay.drained().await;
    }
}
