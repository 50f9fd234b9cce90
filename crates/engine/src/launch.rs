//! Builds the tasks of runs: of runs requested by clients and of the steps inside them.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use ir::RunId;
use module::Module;
use module::compose::{Results, dependencies};
use module::input::media_locations;
use module::lower::{LowerOptions, lower_with_media};
use serde_json::{Map, Value};
use tenancy::Tenant;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::admission::{Permit, Queue};
use crate::compose::{CompositionSpec, CompositionStream};
use crate::config::EngineConfig;
use crate::fleet::BackendSelector;
use crate::gate::GateEvaluator;
use crate::media::PreparedMedia;
use crate::port::{Clock, JournalError, NewRun};
use crate::run::machine::{MachineConfig, RunMachine, SentProgress};
use crate::run::{
    MirrorTasks, Opening, Preface, RecoveredRun, RunBroadcast, RunMode, RunOptions, RunSink, RunTask,
    Warning, context, warnings_annotation,
};

/// Snapshot of what all runs of an engine share.
#[derive(Clone, Debug)]
pub(crate) struct Launcher {
    pub(crate) config: Arc<EngineConfig>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Zero of the fleet's monotonic time.
    pub(crate) epoch: Instant,
    pub(crate) shadows: MirrorTasks,
    pub(crate) stop: CancellationToken,
}

/// Parameters of one run.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) tenant: Tenant,
    pub(crate) run: RunId,
    pub(crate) module: Arc<Module>,
    pub(crate) input: Map<String, Value>,
    pub(crate) mode: RunMode,
    pub(crate) options: RunOptions,
    /// The only models that may answer.
    pub(crate) models: Option<Vec<String>>,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) inherited: Option<RecoveredRun>,
    /// The pending permit, if the run has to wait for one.
    pub(crate) queue: Option<Queue>,
    pub(crate) sink: RunSink,
}

/// A run to insert into the journal, and the channel for the result.
pub(crate) struct First {
    pub(crate) new: NewRun,
    pub(crate) tell: oneshot::Sender<Result<(), JournalError>>,
}

/// The broadcast of a run, created before the first reader can subscribe.
#[derive(Debug)]
pub(crate) struct Seated {
    pub(crate) live: Arc<RunBroadcast>,
    offset: u64,
}

impl Launch {
    pub(crate) fn seat(&self) -> Seated {
        let offset = self.inherited.as_ref().map_or(0, |inherited| inherited.offset);
        let live = RunBroadcast::new(self.tenant.clone(), offset);
        Seated { live, offset }
    }

    /// What clients have received from an earlier server, if it journaled any event.
    fn sent_progress(&self) -> Option<SentProgress> {
        let inherited = self.inherited.as_ref()?;
        let sent = SentProgress {
            last_seq: inherited.last_seq,
            percent: inherited.percent,
        };
        (inherited.offset > 0).then_some(sent)
    }
}

/// The task of a run, or the preparation that yields it.
pub(crate) enum Start {
    Ready(Box<RunTask>),
    Waiting(BoxFuture<'static, Option<Box<RunTask>>>),
}

impl Start {
    /// `None` if the server stops meanwhile.
    pub(crate) async fn task(self) -> Option<Box<RunTask>> {
        match self {
            Self::Ready(task) => Some(task),
            Self::Waiting(task) => task.await,
        }
    }
}

impl Launcher {
    /// Builds the task of a run; for a run that waits for a permit or has media to prepare, after that is
    /// done.
    pub(crate) fn begin(self, launch: Launch, seated: Seated) -> Start {
        let has_media = !media_locations(&launch.module, &launch.input).is_empty();
        match has_media || launch.queue.is_some() {
            false => Start::Ready(self.task(launch, seated, Default::default(), None)),
            true => Start::Waiting(self.prepare(launch, seated, has_media).boxed()),
        }
    }

    async fn prepare(self, mut launch: Launch, mut seated: Seated, has_media: bool) -> Option<Box<RunTask>> {
        let queue = launch.queue.take();
        let own_ms = launch.module.manifest.response.max_duration_ms;
        let mut opening = Opening {
            run: launch.run,
            sink: &launch.sink,
            live: seated.live.clone(),
            offset: seated.offset,
            mode: launch.mode,
            progress: launch.options.progress,
            annotations: warnings_annotation(&launch.warnings),
            inherited: launch.sent_progress(),
            opened: false,
            deadline_ms: launch.options.timeout_ms.unwrap_or(own_ms).min(own_ms),
            stop: self.stop.clone(),
        };
        let turn = match queue {
            None => Ok(None),
            Some(queue) => opening.wait(queue).await?.map(Some),
        };
        let (preface, ready) = match &turn {
            Err(body) => (opening.refused(body.clone()), PreparedMedia::default()),
            Ok(_) if !has_media => (opening.preface(), PreparedMedia::default()),
            Ok(_) => {
                let prepared = opening.prepare(&self.config.media, &launch.module, &launch.input);
                prepared.await?
            }
        };
        seated.offset = opening.offset;
        let permit = turn.ok().flatten();
        Some(self.task(launch, seated, (preface, ready), permit))
    }

    fn lower_options(launch: &Launch) -> LowerOptions {
        LowerOptions {
            request_id: launch.run.to_string(),
            model: launch.options.model.clone(),
            backend: launch.options.backend.clone(),
        }
    }

    /// The fleet's monotonic time.
    fn fleet_ms(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn task(
        &self,
        launch: Launch,
        seated: Seated,
        (preface, ready): (Preface, PreparedMedia),
        permit: Option<Permit>,
    ) -> Box<RunTask> {
        let options = Self::lower_options(&launch);
        let (sent, taken_over) = (launch.sent_progress(), launch.inherited.is_some());
        let module = launch.module;
        // Only steps need the input as received, with the media in it.
        let composed = !dependencies(&module).is_empty();
        let (mut shown, input) = match composed {
            true => (launch.input.clone(), launch.input),
            false => (launch.input, Map::new()),
        };
        ready.insert_into(&mut shown);
        let mut request = lower_with_media(
            &module,
            &shown,
            &Results::default(),
            ready.media.clone(),
            &options,
        );
        let trace = launch.options.trace;
        if let Some(own) = trace.and_then(|trace| context(launch.run, Some(trace))) {
            (request.meta.trace_id, request.meta.span_id) = (Some(own.trace_id()), Some(own.span_id()));
        }
        let (fleet, seed) = (self.config.fleet.clone(), launch.run.seed());
        let mut dispatch = BackendSelector::new(fleet, Arc::new(request), seed, self.fleet_ms());
        dispatch.allow_models(launch.models.clone());
        let preparation = composed.then(|| {
            let job = CompositionSpec {
                tenant: launch.tenant.clone(),
                module: module.clone(),
                input,
                options: launch.options.clone(),
                models: launch.models,
                lower: options,
                ready: Arc::new(ready),
            };
            CompositionStream::new(self.clone(), job)
        });
        let gate = self.config.settings.gates.for_module(module.name()).cloned();
        let plan = MachineConfig {
            run: launch.run,
            reply_policy: Arc::new(GateEvaluator::new(module.clone(), gate)),
            module,
            mode: launch.mode,
            on_disconnect: launch.options.on_disconnect,
            progress: launch.options.progress,
            chunk_type: launch.options.chunk_type,
            warnings: launch.warnings,
            timeout_ms: launch.options.timeout_ms,
            trace,
            settings: self.config.settings.clone(),
            inherited: sent,
            prepares: preparation.is_some(),
            preface,
        };
        Box::new(RunTask {
            run: launch.run,
            machine: Box::new(RunMachine::new(plan, dispatch)),
            fleet: self.config.fleet.clone(),
            sink: launch.sink,
            clock: self.clock.clone(),
            live: seated.live,
            offset: seated.offset,
            taken_over,
            stop: self.stop.clone(),
            shadows: self.shadows.clone(),
            preparation,
            _permit: permit,
        })
    }
}
