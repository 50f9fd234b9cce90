//! The engine: starts runs, opens subscriptions to them, and recovers the runs that a killed server left
//! unfinished. It owns every task it spawns and waits for them when it stops.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use futures::FutureExt;
use ir::RunId;
use module::Module;
use serde_json::Value;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;
use tracing::{info, warn};

use crate::admission::{Admission, Permit, Queue};
use crate::crowd::Crowd;
use crate::error::Error;
use crate::fleet::Fleet;
use crate::gate::GateAction;
use crate::interrupted::InterruptedRun;
use crate::launch::{First, Launch, Launcher, Seated, Start};
use crate::media::MediaPipeline;
use crate::modules::Modules;
use crate::port::{Clock, EncodedEvent, EventKind, Journal, LifecycleRecord, NewRun, RunEnd, RunKind};
use crate::preflight::{check_run, is_safe_to_rerun};
use crate::run::{
    MirrorTasks, ReadFrom, RecoveredRun, RunBroadcast, RunMode, RunRequest, RunSource, StoredCommand,
    Subscription, Trace, TraceSink, TraceStore, Warning, encode, interrupted_chunk, replay,
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

#[derive(Debug)]
pub struct Engine {
    ports: Ports,
    settings: RwLock<Arc<Settings>>,
    modules: watch::Sender<Arc<Modules>>,
    /// The current fleet: initially `ports.fleet`, replaced when the configuration is reloaded.
    fleet: RwLock<Arc<Fleet>>,
    live: Arc<Mutex<HashMap<RunId, Arc<RunBroadcast>>>>,
    traces: Arc<TraceStore>,
    /// Zero of the fleet's monotonic time.
    epoch: Instant,
    pub(crate) crowd: Crowd,
    shadows: MirrorTasks,
    stop: CancellationToken,
    media: RwLock<MediaPipeline>,
}

impl Engine {
    pub fn new(ports: Ports, settings: Settings, modules: Modules) -> Self {
        Self {
            crowd: Crowd::default(),
            fleet: RwLock::new(ports.fleet.clone()),
            ports,
            settings: RwLock::new(Arc::new(settings)),
            modules: watch::Sender::new(Arc::new(modules)),
            live: Arc::default(),
            traces: Arc::default(),
            epoch: Instant::now(),
            media: RwLock::default(),
            shadows: MirrorTasks::default(),
            stop: CancellationToken::new(),
        }
    }

    /// Sets the media pipeline. Without one, nothing is fetched and no file is read.
    #[must_use]
    pub fn with_media(self, media: MediaPipeline) -> Self {
        self.replace_media(media);
        self
    }

    /// Runs in progress keep the pipeline they started with.
    pub fn replace_media(&self, media: MediaPipeline) {
        *self.media.write().unwrap_or_else(PoisonError::into_inner) = media;
    }

    /// Runs in progress keep the settings they started with.
    pub fn replace_settings(&self, settings: Settings) {
        *self.settings.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(settings);
    }

    /// The current settings.
    fn settings(&self) -> Arc<Settings> {
        self.settings
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Whether a complete, valid answer of this module may still be replaced by another back-end's answer.
    pub fn may_rerun(&self, module: &str) -> bool {
        let settings = self.settings();
        let rule = settings.gates.for_module(module);
        rule.is_some_and(|rule| matches!(rule.action, GateAction::Rerun { .. }))
    }

    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.ports.clock
    }

    /// The current modules. The returned snapshot is not affected by later reloads.
    pub fn modules(&self) -> Arc<Modules> {
        self.modules.borrow().clone()
    }

    /// Receives every replacement of the modules.
    pub fn watch_modules(&self) -> watch::Receiver<Arc<Modules>> {
        self.modules.subscribe()
    }

    /// Runs in progress keep the modules they started with.
    pub fn replace_modules(&self, modules: Modules) {
        self.modules.send_replace(Arc::new(modules));
    }

    /// The current back-ends.
    pub fn fleet(&self) -> Arc<Fleet> {
        self.fleet.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Runs in progress keep the back-ends they started with.
    pub fn replace_fleet(&self, fleet: Fleet) {
        *self.fleet.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(fleet);
    }

    /// Sets the receiver for the traces of runs that end from now on. Only the first one set is used.
    pub fn set_trace_sink(&self, witness: TraceSink) {
        self.traces.set_sink(witness);
    }

    /// How many runs and relayed calls are in progress.
    pub fn running(&self) -> usize {
        self.live().len() + self.crowd.relays.len()
    }

    /// Reserves a slot for one relayed call until the token is dropped; else the number in progress.
    pub(crate) fn reserve_slot(&self) -> Result<TaskTrackerToken, usize> {
        let running = self.running();
        match running < self.settings().runs_max {
            true => Ok(self.crowd.relays.token()),
            false => Err(running),
        }
    }

    /// The current media pipeline.
    pub fn media(&self) -> MediaPipeline {
        self.media.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether several runs or relayed calls are in flight, so that yielding can batch their work.
    pub fn is_crowded(&self) -> bool {
        self.crowd.is_there()
    }

    pub(crate) fn journal(&self) -> &Arc<dyn Journal> {
        &self.ports.journal
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
        self.crowd.runs.spawn(async move {
            task.await;
            lock(&running).remove(&run);
        });
    }

    pub(crate) fn shutdown_token(&self) -> &CancellationToken {
        &self.stop
    }

    /// How long a stream without readers continues.
    pub(crate) fn resume_grace(&self) -> Duration {
        Duration::from_millis(self.settings().resume_grace_ms)
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
        let execute = check_run(execute, &self.modules(), &self.fleet()).map_err(Error::Input)?;
        let running = self.running();
        if running >= self.settings().runs_max {
            return Err(Error::TooManyRuns(running));
        }
        let now_ms = self.ports.clock.now_ms();
        let run = RunId::from_parts(now_ms, self.ports.clock.random());
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
            kind: RunKind::Module(String::from(execute.module.name())),
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
            if let Err(error) = self.ports.journal.buffer(tenant, LifecycleRecord::Started(new)) {
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
            journal: self.ports.journal.clone(),
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
        for (tenant, row) in self.ports.journal.unfinished().await? {
            let inherited = replay(&self.ports.journal, &tenant, row.id).await?;
            let command = serde_json::from_str::<StoredCommand>(&row.command).ok();
            let module = row
                .kind
                .module()
                .and_then(|name| modules.get(name))
                .filter(|module| is_safe_to_rerun(module, &modules));
            match (module, command) {
                (Some(module), Some(command)) if command.mode == RunMode::Stream || command.resumable => {
                    info!(run = %row.id, module = module.name(), "rerun of an unfinished run");
                    let beginning = StartParams {
                        inherited: Some(inherited),
                        ..StartParams::default()
                    };
                    let seated = self.register_run(&tenant, row.id, module.clone(), command, beginning);
                    self.spawn(seated, None, None);
                }
                _ => {
                    warn!(run = %row.id, module = row.kind.module(), "close of an unfinished run");
                    let offset = inherited.offset;
                    let last = match row.kind {
                        RunKind::Relay => (offset > 0).then(|| EncodedEvent {
                            kind: EventKind::Interrupted,
                            seq: None,
                            body: Arc::from(""),
                        }),
                        RunKind::Module(_) => {
                            Some(encode(&interrupted_chunk(row.id, inherited, &self.settings())))
                        }
                    };
                    let code = Some(String::from(module::Code::E2010.as_str()));
                    let end = RunEnd::new(code, self.ports.clock.now_ms(), Vec::new());
                    let unfinished = InterruptedRun {
                        tenant,
                        run: row.id,
                        offset,
                        last,
                        end,
                    };
                    unfinished
                        .finish(&self.ports.journal, &self.crowd.runs, &self.stop)
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
        self.crowd.relays.close();
        self.crowd.relays.wait().await;
    }

    async fn runs_drained(&self) {
        self.crowd.runs.close();
        self.crowd.runs.wait().await;
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
            booked: beginning.booked,
            journal: self.ports.journal.clone(),
            traces: self.traces.clone(),
        };
        let seated = launch.seat();
        self.live().insert(run, seated.live.clone());
        (launch, seated)
    }

    /// Journals a run and drives it. Both happen in one task, so a caller that disconnects in between leaves
    /// no run without a driver.
    fn spawn(&self, (launch, seated): (Launch, Seated), permit: Option<Permit>, first: Option<Box<First>>) {
        let (run, running, crowd) = (launch.run, self.live.clone(), self.crowd.clone());
        let (tenant, journal) = (launch.tenant.clone(), launch.journal.clone());
        let launcher = self.launcher();
        // Boxed: large closure.
        let start: Box<dyn FnOnce() -> Start + Send> = Box::new(move || launcher.begin(launch, seated));
        self.crowd.runs.spawn(async move {
            crowd.gather().await;
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
            fleet: self.fleet(),
            clock: self.ports.clock.clone(),
            settings: self.settings(),
            modules: self.modules(),
            epoch: self.epoch,
            shadows: self.shadows.clone(),
            stop: self.stop.clone(),
            media: self.media(),
            crowd: self.crowd.clone(),
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
