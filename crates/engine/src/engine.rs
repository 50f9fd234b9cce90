//! The engine: starts runs, opens subscriptions to them, and recovers the runs that a killed server left
//! unfinished. It owns every task it spawns and waits for them when it stops. An [`Engine`] is a handle with
//! one configuration; the runs are shared by all handles.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use ir::RunId;
use module::Module;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;
use tracing::{info, warn};

use crate::admission::{Admission, Permit, Queue};
use crate::config::EngineConfig;
use crate::error::Error;
use crate::fleet::Fleet;
use crate::gate::GateAction;
use crate::interrupted::InterruptedRun;
use crate::launch::{First, Launch, Launcher, Seated, Start};
use crate::media::MediaPipeline;
use crate::modules::Modules;
use crate::port::{Clock, EncodedEvent, EventKind, Journal, LifecycleRecord, NewRun, RunEnd};
use crate::preflight::{check_run, is_safe_to_rerun};
use crate::run::{
    JournalSink, MirrorTasks, ReadFrom, RecoveredRun, RunBroadcast, RunMode, RunRequest, RunSink, RunSource,
    StoredCommand, Subscription, Trace, TraceSink, TraceStore, Warning, encode, interrupted_chunk, replay,
};
use crate::settings::Settings;
use tenancy::Tenant;

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
    journal: Arc<dyn Journal>,
    clock: Arc<dyn Clock>,
    live: Arc<Mutex<HashMap<RunId, Arc<RunBroadcast>>>>,
    traces: Arc<TraceStore>,
    /// Zero of the fleet's monotonic time.
    epoch: Instant,
    /// One task for each run.
    runs: TaskTracker,
    /// One token for each relayed call, which runs in the task of its caller.
    relays: TaskTracker,
    shadows: MirrorTasks,
    stop: CancellationToken,
}

impl Engine {
    pub fn new(ports: Ports, settings: Settings, modules: Modules) -> Self {
        let config = EngineConfig {
            settings: Arc::new(settings),
            modules: Arc::new(modules),
            fleet: ports.fleet,
            media: MediaPipeline::default(),
        };
        Self {
            config: Arc::new(config),
            journal: ports.journal,
            clock: ports.clock,
            runs: TaskTracker::new(),
            relays: TaskTracker::new(),
            live: Arc::default(),
            traces: Arc::default(),
            epoch: Instant::now(),
            shadows: MirrorTasks::default(),
            stop: CancellationToken::new(),
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
        &self.clock
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
        self.traces.set_sink(witness);
    }

    /// How many runs and relayed calls are in progress.
    pub fn running(&self) -> usize {
        self.live().len() + self.relays.len()
    }

    /// Reserves a slot for one relayed call until the token is dropped; else the number in progress.
    pub(crate) fn reserve_slot(&self) -> Result<TaskTrackerToken, usize> {
        let running = self.running();
        match running < self.config.settings.runs_max {
            true => Ok(self.relays.token()),
            false => Err(running),
        }
    }

    pub(crate) fn journal(&self) -> &Arc<dyn Journal> {
        &self.journal
    }

    /// Registers the broadcast of a run, so that it can be read while it is in progress.
    pub(crate) fn open_broadcast(&self, tenant: &Tenant, run: RunId) -> Arc<RunBroadcast> {
        let live = RunBroadcast::new(tenant.clone(), 0);
        self.live().insert(run, live.clone());
        live
    }

    /// Spawns a tracked task; the broadcast of the run is removed when it ends.
    pub(crate) fn spawn_tracked(&self, run: RunId, task: impl Future<Output = ()> + Send + 'static) {
        let running = self.live.clone();
        self.runs.spawn(async move {
            task.await;
            lock(&running).remove(&run);
        });
    }

    pub(crate) fn shutdown_token(&self) -> &CancellationToken {
        &self.stop
    }

    /// How long a stream without readers continues.
    pub(crate) fn resume_grace(&self) -> Duration {
        Duration::from_millis(self.config.settings.resume_grace_ms)
    }

    pub(crate) fn traces(&self) -> &Arc<TraceStore> {
        &self.traces
    }

    pub(crate) fn shadows(&self) -> &MirrorTasks {
        &self.shadows
    }

    /// Starts a run. An input that the module rejects starts nothing.
    pub async fn start(&self, tenant: &Tenant, execute: RunRequest) -> Result<RunId, Error> {
        self.submit(tenant, execute, Admission::default()).await
    }

    /// Starts a run for a caller; [`Error::DuplicateRequest`] if the idempotency key is already used.
    pub async fn submit(
        &self,
        tenant: &Tenant,
        execute: RunRequest,
        admission: Admission,
    ) -> Result<RunId, Error> {
        let execute = check_run(execute, self.modules(), self.fleet()).map_err(Error::Input)?;
        let running = self.running();
        if running >= self.config.settings.runs_max {
            return Err(Error::TooManyRuns(running));
        }
        let now_ms = self.clock.now_ms();
        let run = RunId::from_parts(now_ms, self.clock.random());
        let command = StoredCommand {
            input: execute.input,
            mode: execute.mode,
            options: execute.options,
            models: admission.models,
            resumable: admission.resumable,
        };
        let once = admission.once.map(|once| once.since(now_ms));
        let new = NewRun {
            id: run,
            module: String::from(execute.module.name()),
            command: serde_json::to_string(&command).unwrap_or_default(),
            created_at_ms: now_ms,
            client: admission.client,
            once,
        };
        let beginning = StartParams {
            warnings: execute.warnings,
            inherited: None,
            queue: admission.queue,
            // Such a run journals only its terminal event, so both records go through the spool.
            booked: new.once.is_none() && command.mode == RunMode::Sync && !command.resumable,
        };
        // Registered before it is journaled: a run that is found in the journal can be read.
        let seated = self.register_run(tenant, run, execute.module, command, beginning);
        // An idempotency key has to be looked up; other runs are buffered, and flushed before any upstream
        // request.
        if new.once.is_none() {
            if let Err(error) = self.journal.buffer(tenant, LifecycleRecord::Started(new)) {
                self.live().remove(&run);
                return Err(error.into());
            }
            self.spawn(seated, admission.permit, None);
            return Ok(run);
        }
        let (tell, created) = oneshot::channel();
        let first = Box::new(First { new, tell });
        self.spawn(seated, admission.permit, Some(first));
        match created.await {
            Ok(created) => created.map(|()| run).map_err(Error::from),
            Err(_) => Err(Error::MissingTerminalEvent(run)),
        }
    }

    /// Reads a run, from its start or from a resume point.
    pub async fn subscribe(
        &self,
        tenant: &Tenant,
        run: RunId,
        from: ReadFrom,
    ) -> Result<Subscription, Error> {
        let live = self
            .live()
            .get(&run)
            .filter(|live| live.tenant == *tenant)
            .cloned();
        if live.is_none() && self.find(tenant, run).await?.is_none() {
            return Err(Error::UnknownRun(run));
        }
        let source = RunSource {
            journal: self.journal.clone(),
            tenant: tenant.clone(),
            run,
            live,
        };
        Subscription::open(source, from).await
    }

    /// Cancels a run in progress. A run that has ended is not changed.
    pub async fn cancel(&self, tenant: &Tenant, run: RunId) -> Result<(), Error> {
        let live = self
            .live()
            .get(&run)
            .filter(|live| live.tenant == *tenant)
            .cloned();
        match live {
            Some(live) => live.cancel.cancel(),
            None if self.find(tenant, run).await?.is_none() => return Err(Error::UnknownRun(run)),
            None => {}
        }
        Ok(())
    }

    /// The trace of a run that has ended, as long as the trace store has it.
    pub fn trace(&self, tenant: &Tenant, run: RunId) -> Option<Arc<Trace>> {
        self.traces.get(tenant, run)
    }

    /// The fleet's monotonic time.
    pub fn monotonic_ms(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Recovers every unfinished run: reruns it where that is safe, closes it otherwise. To be called once,
    /// before the first request is served.
    pub async fn recover(&self) -> Result<(), Error> {
        let modules = self.modules();
        for (tenant, row) in self.journal.unfinished().await? {
            let inherited = replay(&self.journal, &tenant, row.id).await?;
            let command = serde_json::from_str::<StoredCommand>(&row.command).ok();
            let module = modules
                .get(&row.module)
                .filter(|module| is_safe_to_rerun(module, modules));
            match (module, command) {
                (Some(module), Some(command)) if command.mode == RunMode::Stream || command.resumable => {
                    info!(run = %row.id, module = %row.module, "rerun of an unfinished run");
                    let beginning = StartParams {
                        inherited: Some(inherited),
                        ..StartParams::default()
                    };
                    let seated = self.register_run(&tenant, row.id, module.clone(), command, beginning);
                    self.spawn(seated, None, None);
                }
                _ => {
                    warn!(run = %row.id, module = %row.module, "close of an unfinished run");
                    let offset = inherited.offset;
                    let last = match row.module.is_empty() {
                        // Readers of a dialect's frames encode the error in that dialect.
                        true => (offset > 0).then(|| EncodedEvent {
                            kind: EventKind::Error,
                            seq: None,
                            body: Arc::from(""),
                        }),
                        false => Some(encode(&interrupted_chunk(
                            row.id,
                            inherited,
                            &self.config.settings,
                        ))),
                    };
                    let code = Some(String::from(module::Code::E2010.as_str()));
                    let end = RunEnd::new(code, self.clock.now_ms(), Vec::new());
                    let unfinished = InterruptedRun {
                        tenant,
                        run: row.id,
                        offset,
                        last,
                        end,
                    };
                    unfinished
                        .finish(&self.journal, &self.runs, &self.stop)
                        .await?;
                }
            }
        }
        Ok(())
    }

    /// Returns when no run and no relayed call is in progress.
    pub async fn drain(&self) {
        tokio::join!(self.runs_drained(), self.relays_drained());
    }

    /// Stops the tasks of runs, leaves the runs for recovery, and returns when the tasks have ended. Relayed
    /// calls end with the tasks of their callers.
    pub async fn stop(&self) {
        self.stop.cancel();
        self.runs_drained().await;
    }

    /// Returns when no relayed call is in progress; by then all of them are journaled.
    pub async fn relays_drained(&self) {
        self.relays.close();
        self.relays.wait().await;
    }

    async fn runs_drained(&self) {
        self.runs.close();
        self.runs.wait().await;
        // Mirrored requests are cancelled, so they do not delay the shutdown.
        self.shadows.stop().await;
    }

    /// Registers a run: it can be read, but does not execute yet.
    fn register_run(
        &self,
        tenant: &Tenant,
        run: RunId,
        module: Arc<Module>,
        command: StoredCommand,
        beginning: StartParams,
    ) -> (Launch, Seated) {
        let input = match command.input {
            Value::Object(input) => input,
            _ => serde_json::Map::new(),
        };
        let launch = Launch {
            tenant: tenant.clone(),
            run,
            module,
            input,
            mode: command.mode,
            options: command.options,
            models: command.models,
            warnings: beginning.warnings,
            inherited: beginning.inherited,
            queue: beginning.queue,
            sink: RunSink::Journal(JournalSink {
                journal: self.journal.clone(),
                traces: self.traces.clone(),
                spooled: beginning.booked,
            }),
        };
        let seated = launch.seat();
        self.live().insert(run, seated.live.clone());
        (launch, seated)
    }

    /// Journals a run and drives it. Both happen in one task, so a caller that disconnects in between leaves
    /// no run without a driver.
    fn spawn(&self, (launch, seated): (Launch, Seated), permit: Option<Permit>, first: Option<Box<First>>) {
        let (run, running) = (launch.run, self.live.clone());
        let (tenant, journal) = (launch.tenant.clone(), self.journal.clone());
        let launcher = self.launcher();
        // Boxed: large closure.
        let start: Box<dyn FnOnce() -> Start + Send> = Box::new(move || launcher.begin(launch, seated));
        self.runs.spawn(async move {
            let created = match first {
                None => true,
                Some(first) => {
                    let created = journal.create(&tenant, &first.new).await;
                    let is_good = created.is_ok();
                    first.tell.send(created).ok();
                    is_good
                }
            };
            if created && let Some(task) = start().task().await {
                // Boxed: large future.
                task.drive().boxed().await;
            }
            lock(&running).remove(&run);
            drop(permit);
        });
    }

    fn launcher(&self) -> Launcher {
        Launcher {
            config: self.config.clone(),
            clock: self.clock.clone(),
            epoch: self.epoch,
            shadows: self.shadows.clone(),
            stop: self.stop.clone(),
        }
    }

    fn live(&self) -> MutexGuard<'_, HashMap<RunId, Arc<RunBroadcast>>> {
        lock(&self.live)
    }
}

/// Parameters of a start, and the replayed state of a recovered run.
#[derive(Default)]
struct StartParams {
    warnings: Vec<Warning>,
    inherited: Option<RecoveredRun>,
    queue: Option<Queue>,
    booked: bool,
}

/// No code panics while holding the lock, so a poisoned map is consistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
