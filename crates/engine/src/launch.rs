//! How a run's task is put together, for runs that clients ask for and for the steps inside them alike.

use std::sync::Arc;

use ir::RunId;
use module::Module;
use module::compose::links;
use module::lower::{LowerOptions, lower};
use serde_json::{Map, Value};
use tenancy::Tenant;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::compose::{Job, Preparation};
use crate::fleet::{Dispatch, Fleet};
use crate::gate::Keeper;
use crate::modules::Modules;
use crate::port::{Clock, Journal};
use crate::run::machine::{Machine, Plan};
use crate::run::{Inherited, Live, Mode, Options, Shadows, Task, Traces, Warning, context};
use crate::settings::Settings;

/// What all runs of an engine share, as it is at this moment.
#[derive(Clone, Debug)]
pub(crate) struct Launcher {
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) settings: Settings,
    pub(crate) modules: Arc<Modules>,
    /// Where the fleet's time begins.
    pub(crate) epoch: Instant,
    pub(crate) shadows: Shadows,
    pub(crate) stop: CancellationToken,
}

/// What is one run's own.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) tenant: Tenant,
    pub(crate) run: RunId,
    pub(crate) module: Arc<Module>,
    pub(crate) input: Map<String, Value>,
    pub(crate) mode: Mode,
    pub(crate) options: Options,
    /// The only models that may answer.
    pub(crate) models: Option<Vec<String>>,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) inherited: Option<Inherited>,
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) traces: Arc<Traces>,
}

/// A run that is ready to be driven.
#[derive(Debug)]
pub(crate) struct Launched {
    pub(crate) task: Task,
    pub(crate) live: Arc<Live>,
}

impl Launcher {
    pub(crate) fn task(&self, launch: Launch) -> Launched {
        let module = launch.module;
        let options = LowerOptions {
            request_id: launch.run.to_string(),
            model: launch.options.model.clone(),
        };
        let mut request = lower(&module, &launch.input, &options);
        let trace = launch.options.trace;
        if let Some(own) = trace.and_then(|trace| context(launch.run, Some(trace))) {
            request.meta.trace_id = Some(own.trace_id());
            request.meta.span_id = Some(own.span_id());
        }
        let fleet_ms = u64::try_from(self.epoch.elapsed().as_millis()).unwrap_or(u64::MAX);
        let mut dispatch = Dispatch::new(self.fleet.clone(), Arc::new(request), launch.run.seed(), fleet_ms);
        dispatch.allow_models(launch.models.clone());
        let taken_over = launch.inherited.is_some();
        let offset = launch.inherited.as_ref().map_or(0, |inherited| inherited.offset);
        let preparation = (!links(&module).is_empty()).then(|| {
            let job = Job {
                tenant: launch.tenant.clone(),
                module: module.clone(),
                input: launch.input,
                options: launch.options.clone(),
                models: launch.models,
                lower: options,
            };
            Preparation::new(self.clone(), job)
        });
        let gate = self.settings.gates.for_module(module.name()).cloned();
        let plan = Plan {
            run: launch.run,
            judge: Arc::new(Keeper::new(module.clone(), gate)),
            module,
            mode: launch.mode,
            on_disconnect: launch.options.on_disconnect,
            progress: launch.options.progress,
            chunk_type: launch.options.chunk_type,
            warnings: launch.warnings,
            timeout_ms: launch.options.timeout_ms,
            trace,
            settings: self.settings.clone(),
            inherited: launch.inherited,
            prepares: preparation.is_some(),
        };
        let live = Live::new(launch.tenant, offset);
        let task = Task {
            run: launch.run,
            machine: Machine::new(plan, dispatch),
            fleet: self.fleet.clone(),
            journal: launch.journal,
            clock: self.clock.clone(),
            seats: live.watch_seats(),
            live: live.clone(),
            offset,
            taken_over,
            stop: self.stop.clone(),
            traces: launch.traces,
            shadows: self.shadows.clone(),
            preparation,
        };
        Launched { task, live }
    }
}
