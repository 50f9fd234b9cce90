//! The runs of modules: starts them, and holds what can be read and cancelled of those in progress. Owns every
//! task that it spawns and waits for them when it stops.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ir::RunId;
use serde_json::{Map, Value};
use tenancy::Tenant;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::admission::{Permit, Repeatable};
use crate::config::EngineConfig;
use crate::error::Error;
use crate::launch::{Launcher, RunIo, RunSpec};
use crate::media::{KeptFiles, to_journal};
use crate::port::{Clock, Journal, JournalError, NewRun, RunKind, RunState};
use crate::run::{
    JournalSink, MirrorTasks, ReadFrom, RunBroadcast, RunRequest, RunSink, RunSource, StartedRun,
    StoredCommand, Subscription, TraceStore,
};
use crate::schema_threads::SchemaThreads;

/// A handle: clones share the runs.
#[derive(Clone, Debug)]
pub(crate) struct Runs {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) clock: Arc<dyn Clock>,
    /// In progress.
    live: Arc<Mutex<HashMap<RunId, Arc<RunBroadcast>>>>,
    pub(crate) traces: Arc<TraceStore>,
    /// Zero of the fleet's monotonic time.
    epoch: Instant,
    /// One task for each run.
    pub(crate) tasks: TaskTracker,
    pub(crate) shadows: MirrorTasks,
    pub(crate) stop: CancellationToken,
    pub(crate) schema_threads: SchemaThreads,
}

/// A run to insert into the journal, and the channel for the result.
type NewRow = (NewRun, oneshot::Sender<Result<(), JournalError>>);

impl Runs {
    pub(crate) fn new(journal: Arc<dyn Journal>, clock: Arc<dyn Clock>) -> Self {
        Self {
            journal,
            clock,
            live: Arc::default(),
            traces: Arc::default(),
            epoch: Instant::now(),
            tasks: TaskTracker::new(),
            shadows: MirrorTasks::default(),
            stop: CancellationToken::new(),
            schema_threads: SchemaThreads::default(),
        }
    }

    /// The number of runs in progress.
    pub(crate) fn count(&self) -> usize {
        self.live().len()
    }

    /// The fleet's monotonic time.
    pub(crate) fn monotonic_ms(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    pub(crate) async fn start(
        &self,
        config: &Arc<EngineConfig>,
        tenant: &Tenant,
        request: RunRequest,
    ) -> Result<StartedRun, Error> {
        let now_ms = self.clock.now_ms();
        let id = RunId::from_parts(now_ms, self.clock.random());
        let admission = request.admission;
        let mut command = StoredCommand {
            input: match request.input {
                Value::Object(input) => input,
                _ => Map::new(),
            },
            mode: request.mode,
            options: request.options,
            models: admission.models,
            resumable: admission.resumable,
        };
        let (journaled, texts) = to_journal(&request.module, &mut command);
        let new = NewRun {
            id,
            kind: RunKind::Module(String::from(request.module.name())),
            command: journaled,
            created_at_ms: now_ms,
            client: admission.client,
            once: admission.once.map(|once| once.since(now_ms)),
        };
        let spec = RunSpec {
            id,
            tenant: tenant.clone(),
            module: request.module,
            command,
            warnings: request.warnings,
            recovered: None,
        };
        let mut io = self.register(&spec);
        io.queue = admission.queue;
        io.kept = KeptFiles::new(config.media.run_files(), id, texts, &self.stop);
        let live = io.live.clone();
        // Dropped with this call: a caller that disconnects before it can read has left like any other reader.
        let _caller = live.clone().add_reader();
        let (tell, created) = oneshot::channel();
        self.spawn(config, spec, io, admission.permit, Some((new, tell)));
        match created.await {
            Ok(Ok(())) => {}
            Ok(Err(JournalError::DuplicateKey(named))) if named.same_request => {
                return self.replayed(tenant, named.run).await;
            }
            Ok(Err(error)) => return Err(error.into()),
            Err(_) => return Err(Error::MissingTerminalEvent(id)),
        }
        let source = self.source(tenant, id, Some(live));
        Ok(StartedRun {
            id,
            subscription: Subscription::open(source, ReadFrom::Start).await?,
            replayed: false,
        })
    }

    pub(crate) async fn replay(
        &self,
        tenant: &Tenant,
        client: &str,
        repeatable: &Repeatable,
    ) -> Result<Option<StartedRun>, Error> {
        let once = repeatable.clone().since(self.clock.now_ms());
        match self
            .journal
            .find_by_idempotency_key(tenant, client, &once)
            .await?
        {
            None => Ok(None),
            Some(named) if named.same_request => Ok(Some(self.replayed(tenant, named.run).await?)),
            Some(named) => Err(Error::DuplicateRequest(named)),
        }
    }

    async fn replayed(&self, tenant: &Tenant, id: RunId) -> Result<StartedRun, Error> {
        Ok(StartedRun {
            id,
            subscription: self.subscribe(tenant, id, ReadFrom::Start).await?,
            replayed: true,
        })
    }

    pub(crate) async fn subscribe(
        &self,
        tenant: &Tenant,
        run: RunId,
        from: ReadFrom,
    ) -> Result<Subscription, Error> {
        let live = self.broadcast(tenant, run);
        if live.is_none() && self.journal.find(tenant, run).await?.is_none() {
            return Err(Error::UnknownRun(run));
        }
        Subscription::open(self.source(tenant, run, live), from).await
    }

    pub(crate) async fn cancel(&self, tenant: &Tenant, run: RunId) -> Result<(), Error> {
        if let Some(live) = self.broadcast(tenant, run) {
            live.cancel.cancel();
            return Ok(());
        }
        match self.journal.find(tenant, run).await?.map(|row| row.state) {
            None => Err(Error::UnknownRun(run)),
            Some(RunState::Running) => Err(Error::NotOwned(run)),
            Some(RunState::Done | RunState::Failed) => Ok(()),
        }
    }

    /// Cancels the tasks, which leave their runs for recovery, and waits for them.
    pub(crate) async fn stop(&self) {
        self.stop.cancel();
        self.drained().await;
    }

    /// Returns when no run is in progress.
    pub(crate) async fn drained(&self) {
        self.tasks.close();
        self.tasks.wait().await;
        // Mirrored requests are cancelled, so they do not delay the shutdown.
        self.shadows.stop().await;
    }

    /// Registers a run: it can be read, but does not execute yet. A run is registered before it is journaled,
    /// so that a run that is found in the journal can be read.
    pub(crate) fn register(&self, spec: &RunSpec) -> RunIo {
        let offset = spec.recovered.as_ref().map_or(0, |recovered| recovered.offset);
        RunIo {
            live: self.open_broadcast(&spec.tenant, spec.id, offset),
            offset,
            sink: RunSink::Journal(JournalSink {
                journal: self.journal.clone(),
                traces: self.traces.clone(),
            }),
            queue: None,
            kept: None,
        }
    }

    /// Registers the broadcast of a run, so that it can be read while it is in progress.
    pub(crate) fn open_broadcast(&self, tenant: &Tenant, run: RunId, offset: u64) -> Arc<RunBroadcast> {
        let live = RunBroadcast::new(tenant.clone(), offset);
        self.live().insert(run, live.clone());
        live
    }

    /// Spawns a tracked task; the broadcast of the run is removed when it ends.
    pub(crate) fn spawn_tracked(&self, run: RunId, task: impl Future<Output = ()> + Send + 'static) {
        let live = self.live.clone();
        self.tasks.spawn(async move {
            task.await;
            lock(&live).remove(&run);
        });
    }

    /// Journals a run and drives it. Both happen in one task, so a caller that disconnects in between leaves
    /// no run without a driver.
    pub(crate) fn spawn(
        &self,
        config: &Arc<EngineConfig>,
        spec: RunSpec,
        mut io: RunIo,
        permit: Option<Permit>,
        new: Option<NewRow>,
    ) {
        let (run, live) = (spec.id, self.live.clone());
        let (tenant, journal) = (spec.tenant.clone(), self.journal.clone());
        let mut kept = io.kept.take();
        let task = Launcher::new(config.clone(), self.clone()).task(spec, io);
        self.tasks.spawn(async move {
            let created = match new {
                None => true,
                Some((new, tell)) => {
                    let created = journal.create(&tenant, &new).await;
                    let is_good = created.is_ok();
                    tell.send(created).ok();
                    is_good
                }
            };
            KeptFiles::write(kept.as_mut()).await;
            if created && let Some(task) = task.await {
                task.drive().await;
            }
            lock(&live).remove(&run);
            drop((permit, kept));
        });
    }

    fn source(&self, tenant: &Tenant, run: RunId, live: Option<Arc<RunBroadcast>>) -> RunSource {
        RunSource {
            journal: self.journal.clone(),
            tenant: tenant.clone(),
            run,
            live,
        }
    }

    fn broadcast(&self, tenant: &Tenant, run: RunId) -> Option<Arc<RunBroadcast>> {
        let live = self.live();
        live.get(&run).filter(|live| live.tenant == *tenant).cloned()
    }

    fn live(&self) -> MutexGuard<'_, HashMap<RunId, Arc<RunBroadcast>>> {
        lock(&self.live)
    }
}

/// No code panics while holding the lock, so a poisoned map is consistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
