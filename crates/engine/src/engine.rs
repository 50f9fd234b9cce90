//! The engine: starts runs, lets anyone read them, and picks up what a killed server left behind. It
//! owns every task it starts and waits for them when it stops.

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
use crate::launch::{First, Launch, Launcher, Seated, Start};
use crate::media::MediaPipeline;
use crate::modules::Modules;
use crate::preflight::{check_run, is_safe_to_rerun};
use crate::port::{LifecycleRecord, Clock, RunEnd, Journal, EventKind, NewRun, EncodedEvent};
use crate::run::{
    StoredCommand, RunRequest, ReadFrom, RecoveredRun, RunBroadcast, RunMode, MirrorTasks, RunSource, Subscription, Trace, TraceStore, Warning,
    TraceSink, replay, interrupted_chunk, encode,
};
use crate::settings::Settings;
use crate::interrupted::InterruptedRun;
use tenancy::Tenant;

/// What an engine stands on.
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
    /// Takes the place of the one in `ports` as soon as the configuration changes.
    fleet: RwLock<Arc<Fleet>>,
    live: Arc<Mutex<HashMap<RunId, Arc<RunBroadcast>>>>,
    traces: Arc<TraceStore>,
    /// Where the fleet's time begins.
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

    /// Who makes the media of runs ready. Without one, nothing is fetched and no file is read.
    #[must_use]
    pub fn with_media(self, media: MediaPipeline) -> Self {
        self.replace_media(media);
        self
    }

    /// Runs that are in progress keep what they began with.
    pub fn replace_media(&self, media: MediaPipeline) {
        *self.media.write().unwrap_or_else(PoisonError::into_inner) = media;
    }

    /// Runs that are in progress keep what they began with.
    pub fn replace_settings(&self, settings: Settings) {
        *self.settings.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(settings);
    }

    /// The settings of this moment.
    fn settings(&self) -> Arc<Settings> {
        self.settings
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Whether a whole and good answer of this module may still be replaced by that of another back-end.
    pub fn may_rerun(&self, module: &str) -> bool {
        let settings = self.settings();
        let rule = settings.gates.for_module(module);
        rule.is_some_and(|rule| matches!(rule.action, GateAction::Rerun { .. }))
    }

    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.ports.clock
    }

    /// The modules of this moment. Whoever holds the set keeps it, whatever replaces it.
    pub fn modules(&self) -> Arc<Modules> {
        self.modules.borrow().clone()
    }

    /// Tells whenever the modules have been replaced.
    pub fn watch_modules(&self) -> watch::Receiver<Arc<Modules>> {
        self.modules.subscribe()
    }

    /// Runs that are in progress keep the modules they began with.
    pub fn replace_modules(&self, modules: Modules) {
        self.modules.send_replace(Arc::new(modules));
    }

    /// The back-ends of this moment.
    pub fn fleet(&self) -> Arc<Fleet> {
        self.fleet.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Runs that are in progress keep the back-ends they began with.
    pub fn replace_fleet(&self, fleet: Fleet) {
        *self.fleet.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(fleet);
    }

    /// Tells of every run that ends, from now on. Only one can be told.
    pub fn set_trace_sink(&self, witness: TraceSink) {
        self.traces.set_sink(witness);
    }

    /// How many runs and relayed calls are in progress.
    pub fn running(&self) -> usize {
        self.live().len() + self.crowd.relays.len()
    }

    /// Room for one more relayed call, for as long as it is held; else how many are in progress.
    pub(crate) fn reserve_slot(&self) -> Result<TaskTrackerToken, usize> {
        let running = self.running();
        match running < self.settings().runs_max {
            true => Ok(self.crowd.relays.token()),
            false => Err(running),
        }
    }

    /// Who makes media ready, as of this moment.
    pub fn media(&self) -> MediaPipeline {
        self.media.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether several runs or relayed calls are under way: what one does may wait for others to come as far.
    pub fn is_crowded(&self) -> bool {
        self.crowd.is_there()
    }

    pub(crate) fn journal(&self) -> &Arc<dyn Journal> {
        &self.ports.journal
    }

    /// A run that is read while it goes on.
    pub(crate) fn open_broadcast(&self, tenant: &Tenant, run: RunId) -> Arc<RunBroadcast> {
        let live = RunBroadcast::new(tenant.clone(), 0);
        self.live().insert(run, live.clone());
        live
    }

    /// Runs to the end in a task of the engine's own.
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

    /// How long something goes on with nobody listening.
    pub(crate) fn resume_grace(&self) -> Duration {
        Duration::from_millis(self.settings().resume_grace_ms)
    }

    pub(crate) fn traces(&self) -> &Arc<TraceStore> {
        &self.traces
    }

    pub(crate) fn shadows(&self) -> &MirrorTasks {
        &self.shadows
    }

    /// Starts a run. An input that the module does not take starts nothing.
    pub async fn start(&self, tenant: &Tenant, execute: RunRequest) -> Result<RunId, Error> {
        self.submit(tenant, execute, Admission::default()).await
    }

    /// Starts a run for somebody. One that was to happen only once and has is [`Error::Repeated`].
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
            // What says all it has to say at its end waits for no journal.
            booked: new.once.is_none() && command.mode == RunMode::Sync && !command.resumable,
        };
        // Before it is in the journal: whoever finds it there can listen to it.
        let seated = self.register_run(tenant, run, execute.module, command, beginning);
        // A name has to be looked up; all others are noted, and nobody is asked before they are booked.
        if new.once.is_none() {
            if let Err(error) = self.ports.journal.buffer(tenant, LifecycleRecord::Started(new)) {
                self.live().remove(&run);
                return Err(error.into());
            }
            self.spawn(seated, admission.permit, None);
            return Ok(run);
        }
        let (tell, told) = oneshot::channel();
        let first = Box::new(First { new, tell });
        self.spawn(seated, admission.permit, Some(first));
        match told.await {
            Ok(created) => created.map(|()| run).map_err(Error::from),
            Err(_) => Err(Error::MissingTerminalEvent(run)),
        }
    }

    /// Reads a run, from its start or from where a client was.
    pub async fn subscribe(&self, tenant: &Tenant, run: RunId, from: ReadFrom) -> Result<Subscription, Error> {
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

    /// Ends a run that is in progress. One that has ended stays as it is.
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

    /// What a run tried on its way, once it has ended and while it is remembered.
    pub fn trace(&self, tenant: &Tenant, run: RunId) -> Option<Arc<Trace>> {
        self.traces.get(tenant, run)
    }

    /// The fleet's time: it only ever goes forward.
    pub fn monotonic_ms(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Picks up every run that was left unfinished: runs it again where that does no harm, and ends it
    /// where it might. To be called once, before anyone is served.
    pub async fn recover(&self) -> Result<(), Error> {
        let modules = self.modules();
        for (tenant, row) in self.ports.journal.unfinished().await? {
            let inherited = replay(&self.ports.journal, &tenant, row.id).await?;
            let command = serde_json::from_str::<StoredCommand>(&row.command).ok();
            let module = modules
                .get(&row.module)
                .filter(|module| is_safe_to_rerun(module, &modules));
            match (module, command) {
                (Some(module), Some(command)) if command.mode == RunMode::Stream || command.resumable => {
                    info!(run = %row.id, module = %row.module, "runs an unfinished run again");
                    let beginning = StartParams {
                        inherited: Some(inherited),
                        ..StartParams::default()
                    };
                    let seated = self.register_run(&tenant, row.id, module.clone(), command, beginning);
                    self.spawn(seated, None, None);
                }
                _ => {
                    warn!(run = %row.id, module = %row.module, "ends an unfinished run");
                    let offset = inherited.offset;
                    let last = match row.module.is_empty() {
                        // Whoever reads frames of a dialect tells in its words that there are no more.
                        true => (offset > 0).then(|| EncodedEvent {
                            kind: EventKind::Error,
                            seq: None,
                            body: Arc::from(""),
                        }),
                        false => Some(encode(&interrupted_chunk(row.id, inherited, &self.settings()))),
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

    /// Returns when no run and no relayed call is left.
    pub async fn drain(&self) {
        tokio::join!(self.runs_drained(), self.relays_drained());
    }

    /// Leaves running runs to the next server and returns when their tasks are gone. Relayed calls are ended by those
    /// in whose tasks they live.
    pub async fn stop(&self) {
        self.stop.cancel();
        self.runs_drained().await;
    }

    /// Returns when no relayed call is left: by then all of them stand in the accounts.
    pub async fn relays_drained(&self) {
        self.crowd.relays.close();
        self.crowd.relays.wait().await;
    }

    async fn runs_drained(&self) {
        self.crowd.runs.close();
        self.crowd.runs.wait().await;
        // Copies that nobody waits for hold up nobody's end.
        self.shadows.stop().await;
    }

    /// A run that can be listened to, and does nothing yet.
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

    /// Runs it, once it is in the journal. Both are one task: a caller who leaves in between leaves no run behind
    /// that nobody drives.
    fn spawn(&self, (launch, seated): (Launch, Seated), permit: Option<Permit>, first: Option<Box<First>>) {
        let (run, running, crowd) = (launch.run, self.live.clone(), self.crowd.clone());
        let (tenant, journal) = (launch.tenant.clone(), launch.journal.clone());
        let launcher = self.launcher();
        // In a box: a run that has begun holds no room for how it began.
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
                // In a box of its own: a run that waits holds only what it still needs.
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

/// What a run begins with: nothing, or what another server left of it.
#[derive(Default)]
struct StartParams {
    warnings: Vec<Warning>,
    inherited: Option<RecoveredRun>,
    queue: Option<Queue>,
    booked: bool,
}

/// No code panics while it holds the lock, so a poisoned map is still whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
