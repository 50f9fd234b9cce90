//! Builds the tasks of runs: of runs requested by clients and of the steps inside them.

use std::sync::Arc;

use ir::RunId;
use module::Module;
use module::compose::{Results, dependencies};
use module::input::media_locations;
use module::lower::{LowerOptions, lower_with_media};
use tenancy::Tenant;

use crate::admission::{Permit, Queue};
use crate::compose::{CompositionSpec, CompositionStream};
use crate::config::EngineConfig;
use crate::fleet::BackendSelector;
use crate::gate::GateEvaluator;
use crate::media::{KeptFiles, PreparedMedia};
use crate::run::machine::{MachineConfig, RunMachine, SentProgress};
use crate::run::{
    Opening, Preface, RecoveredRun, RunBroadcast, RunOptions, RunSink, RunTask, StoredCommand, Warning,
    context,
};
use crate::runs::Runs;

/// Builds the tasks of runs, with one configuration.
#[derive(Clone, Debug)]
pub(crate) struct Launcher {
    pub(crate) config: Arc<EngineConfig>,
    pub(crate) runs: Runs,
}

/// What a run executes, for whom.
#[derive(Debug)]
pub(crate) struct RunSpec {
    pub(crate) id: RunId,
    pub(crate) tenant: Tenant,
    pub(crate) module: Arc<Module>,
    pub(crate) command: StoredCommand,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) recovered: Option<RecoveredRun>,
}

/// Where a run is read and journaled, and the permit that it waits for.
#[derive(Debug)]
pub(crate) struct RunIo {
    pub(crate) live: Arc<RunBroadcast>,
    /// Offset of the last journal entry.
    pub(crate) offset: u64,
    pub(crate) sink: RunSink,
    /// The pending permit, if the run has to wait for one.
    pub(crate) queue: Option<Queue>,
    /// Held by the task of the run.
    pub(crate) kept: Option<KeptFiles>,
}

impl RunSpec {
    /// What clients have received from an earlier server, if it journaled any event.
    pub(crate) fn sent_progress(&self) -> Option<SentProgress> {
        let recovered = self.recovered.as_ref()?;
        let sent = SentProgress {
            last_seq: recovered.last_seq,
            percent: recovered.percent,
        };
        (recovered.offset > 0).then_some(sent)
    }

    /// Time limit of the run.
    pub(crate) fn limit_ms(&self) -> u64 {
        let own_ms = self.module.manifest.response.max_duration_ms;
        self.command.options.timeout_ms.unwrap_or(own_ms).min(own_ms)
    }

    fn lower_options(&self) -> LowerOptions {
        LowerOptions {
            request_id: self.id.to_string(),
            model: self.command.options.model.clone(),
            backend: self.command.options.backend.clone(),
        }
    }
}

impl Launcher {
    pub(crate) fn new(config: Arc<EngineConfig>, runs: Runs) -> Self {
        Self { config, runs }
    }

    /// The task of a run, after the run has its permit and its media are prepared; `None` if the server stops
    /// meanwhile.
    pub(crate) async fn task(self, spec: RunSpec, mut io: RunIo) -> Option<Box<RunTask>> {
        let has_media = !media_locations(&spec.module, &spec.command.input).is_empty();
        let prepared = match has_media || io.queue.is_some() {
            false => Prepared::default(),
            true => self.prepare(&spec, &mut io, has_media).await?,
        };
        Some(self.build(spec, io, prepared))
    }

    async fn prepare(&self, spec: &RunSpec, io: &mut RunIo, has_media: bool) -> Option<Prepared> {
        let queue = io.queue.take();
        let mut opening = Opening {
            spec,
            io,
            opened: false,
            stop: self.runs.stop.clone(),
        };
        let permit = match queue {
            None => None,
            Some(queue) => match opening.wait(queue).await? {
                Ok(permit) => Some(permit),
                Err(body) => {
                    return Some(Prepared {
                        preface: opening.refused(body),
                        ..Prepared::default()
                    });
                }
            },
        };
        let (preface, media) = match has_media {
            false => (opening.preface(), PreparedMedia::default()),
            true => opening.prepare(&self.config.media).await?,
        };
        Some(Prepared {
            preface,
            media,
            permit,
        })
    }

    fn build(&self, mut spec: RunSpec, io: RunIo, prepared: Prepared) -> Box<RunTask> {
        let (sent, lower) = (spec.sent_progress(), spec.lower_options());
        let module = spec.module.clone();
        // Only steps need the input as received, with the media in it.
        let composed = !dependencies(&module).is_empty();
        let mut shown = match composed {
            true => spec.command.input.clone(),
            false => std::mem::take(&mut spec.command.input),
        };
        prepared.media.insert_into(&mut shown);
        let media = prepared.media.media.clone();
        let mut request = lower_with_media(&module, &shown, &Results::default(), media, &lower);
        let RunOptions {
            on_disconnect,
            progress,
            chunk_type,
            timeout_ms,
            trace,
            ..
        } = spec.command.options;
        if let Some(own) = trace.and_then(|trace| context(spec.id, Some(trace))) {
            (request.meta.trace_id, request.meta.span_id) = (Some(own.trace_id()), Some(own.span_id()));
        }
        let (fleet, now_ms) = (self.config.fleet.clone(), self.runs.monotonic_ms());
        let mut dispatch = BackendSelector::new(fleet, Arc::new(request), spec.id.seed(), now_ms);
        dispatch.allow_models(spec.command.models.clone());
        let settings = self.config.settings.clone();
        let gate = settings.gates.for_module(module.name()).cloned();
        let plan = MachineConfig {
            run: spec.id,
            reply_policy: Arc::new(GateEvaluator::new(module.clone(), gate)),
            module,
            mode: spec.command.mode,
            on_disconnect,
            progress,
            chunk_type,
            warnings: std::mem::take(&mut spec.warnings),
            timeout_ms,
            trace,
            settings,
            inherited: sent,
            prepares: composed,
            preface: prepared.preface,
        };
        let (run, taken_over) = (spec.id, spec.recovered.is_some());
        let preparation = composed.then(|| {
            let job = CompositionSpec {
                run: Arc::new(spec),
                lower,
                ready: Arc::new(prepared.media),
            };
            CompositionStream::new(self.clone(), job)
        });
        Box::new(RunTask {
            run,
            machine: Box::new(RunMachine::new(plan, dispatch)),
            fleet: self.config.fleet.clone(),
            sink: io.sink,
            clock: self.runs.clock.clone(),
            live: io.live,
            offset: io.offset,
            taken_over,
            stop: self.runs.stop.clone(),
            schema_threads: self.runs.schema_threads.clone(),
            shadows: self.runs.shadows.clone(),
            preparation,
            _permit: prepared.permit,
        })
    }
}

/// What a run has waited for before its task is built.
#[derive(Default)]
struct Prepared {
    preface: Preface,
    media: PreparedMedia,
    permit: Option<Permit>,
}
