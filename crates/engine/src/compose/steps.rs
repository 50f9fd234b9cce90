//! Executes the steps of one composition: starts them as the flow allows, applies timeouts and fallbacks, and
//! reports results to the flow. Context is passed to the steps and, where it is shared, back from them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::channel::mpsc;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream, FuturesUnordered};
use futures::{FutureExt, SinkExt, StreamExt};
use module::compose::{CompositionMachine, Outcome, StepStart, resolve};
use module::context::{self, CONTEXT_KEY, EMITTED_KEY};
use module::envelope::{Envelope, ErrorBody};
use module::lower::{LowerOptions, lower_with_media};
use module::manifest::ContextMode;
use module::{Code, Module};
use serde_json::{Map, Value, json};

use super::annotations::StepAnnotations;
use super::child::{self, StepRun};
use super::{CompositionEvent, CompositionResult};
use crate::launch::{Launcher, RunSpec};
use crate::limits;
use crate::media::PreparedMedia;
use crate::run::AttemptRecord;
use crate::tokens;

/// The stream of events of a composition; dropping it cancels everything that it started.
pub(crate) struct CompositionStream(BoxStream<'static, CompositionEvent>);

impl fmt::Debug for CompositionStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CompositionStream")
    }
}

/// Parameters of a composition.
#[derive(Clone, Debug)]
pub(crate) struct CompositionSpec {
    /// The composed run; its input has the admitted context.
    pub(crate) run: Arc<RunSpec>,
    pub(crate) lower: LowerOptions,
    /// The media of the input; steps that receive media inspect it themselves.
    pub(crate) ready: Arc<PreparedMedia>,
}

impl CompositionStream {
    pub(crate) async fn next(&mut self) -> Option<CompositionEvent> {
        self.0.next().await
    }

    pub(crate) fn new(launcher: Launcher, job: CompositionSpec) -> Self {
        let (notes, events) = mpsc::channel(limits::STEP_PROGRESS_QUEUE_MAX);
        let mut last = notes.clone();
        let work = CompositionRunner {
            context: initial_context(&job.run.command.input),
            launcher,
            job,
            progress_tx: notes,
            emitted: Map::new(),
            usage: Vec::new(),
            attempts: Vec::new(),
            remarks: StepAnnotations::default(),
        };
        // The result is sent on the same channel as the progress, so that it follows it.
        let work = async move {
            let composed = work.compose().await;
            last.send(CompositionEvent::Done(Box::new(composed))).await.ok();
        };
        let driver = stream::once(work).filter_map(|()| std::future::ready(None));
        Self(stream::select(events, driver).boxed())
    }
}

fn initial_context(input: &Map<String, Value>) -> Map<String, Value> {
    let context = input.get(CONTEXT_KEY).and_then(Value::as_object);
    context.cloned().unwrap_or_default()
}

struct CompositionRunner {
    launcher: Launcher,
    job: CompositionSpec,
    progress_tx: mpsc::Sender<CompositionEvent>,
    /// The context that steps receive: that of the run, and what shared steps have added.
    context: Map<String, Value>,
    emitted: Map<String, Value>,
    usage: Vec<Value>,
    attempts: Vec<AttemptRecord>,
    remarks: StepAnnotations,
}

/// Result of a step.
struct StepResult {
    index: usize,
    step: String,
    /// The module that answered, if one was found.
    module: Option<Arc<Module>>,
    ended: Vec<StepRun>,
    envelope: Map<String, Value>,
    /// A module that was replaced, and why.
    replaced: Option<String>,
}

impl CompositionRunner {
    async fn compose(mut self) -> CompositionResult {
        let mut flow = match CompositionMachine::new(&self.job.run.module, &self.job.run.command.input) {
            Ok(Some(flow)) => flow,
            Ok(None) => {
                let outcome = Outcome::Ask {
                    input: self.job.run.command.input.clone(),
                    results: module::compose::Results::default(),
                };
                return self.composed(outcome, Vec::new()).await;
            }
            Err(error) => {
                let outcome = Outcome::Fail {
                    error,
                    partial_data: None,
                };
                return self.composed(outcome, Vec::new()).await;
            }
        };
        let limit_ms = self.job.run.module.manifest.composition.timeout_ms;
        let limit = Duration::from_millis(limit_ms);
        let outcome = match tokio::time::timeout(limit, self.run(&mut flow)).await {
            Ok(outcome) => outcome,
            Err(_) => {
                let message = format!("the steps of the composition took longer than {limit_ms} ms");
                flow.abort(ErrorBody::new(Code::E2002, message).detail("allowed_ms", limit_ms))
            }
        };
        let warnings = flow.warnings().to_vec();
        self.composed(outcome, warnings).await
    }

    async fn run(&mut self, flow: &mut CompositionMachine) -> Outcome {
        let mut running: FuturesUnordered<BoxFuture<'static, StepResult>> = FuturesUnordered::new();
        loop {
            for start in flow.start() {
                self.note(flow, format!("step {} started", start.step));
                let context = self.context_for(flow, &start);
                running.push(step(self.launcher.clone(), self.job.clone(), start, context).boxed());
            }
            // A failure ends the composition, and returning cancels the steps that still run.
            if let Some(outcome) = flow.outcome() {
                return outcome;
            }
            let Some(end) = running.next().await else {
                let error = ErrorBody::new(Code::E4000, "the composition stalled");
                return flow.abort(error);
            };
            self.take(flow, end);
        }
    }

    fn take(&mut self, flow: &mut CompositionMachine, end: StepResult) {
        for mut ended in end.ended {
            for attempt in &mut ended.attempts {
                let inner = attempt.step.take();
                attempt.step = Some(match inner {
                    Some(inner) => format!("{}/{inner}", end.step),
                    None => end.step.clone(),
                });
            }
            self.attempts.extend(ended.attempts);
            self.usage.push(ended.usage);
        }
        if let Some(replaced) = end.replaced {
            flow.warn(Code::W4006, &replaced, &end.step);
        }
        let mut envelope = end.envelope;
        self.remarks.extract(&end.step, &mut envelope);
        let emitted = envelope.shift_remove(EMITTED_KEY);
        if let (Some(Value::Object(emitted)), Some(module)) = (emitted, end.module) {
            let modes = [&self.job.run.module, &module].map(|module| module.manifest.context.mode);
            if modes.iter().all(|mode| *mode == ContextMode::Main) {
                self.context.extend(emitted.clone());
                self.emitted.extend(emitted);
            }
        }
        envelope.retain(|key, _| !key.starts_with('_'));
        flow.finish(end.index, Value::Object(envelope));
        self.note(flow, format!("step {} ended", end.step));
    }

    /// The context of a step: the shared context, and the previous result if its module accepts one.
    fn context_for(&self, flow: &CompositionMachine, start: &StepStart) -> Map<String, Value> {
        let mut context = self.context.clone();
        let Some(module) = self.launcher.config.modules.get(&start.requirement.name) else {
            return context;
        };
        let accepts = module.manifest.context.accepts.iter();
        let Some(accept) = accepts.into_iter().find(|accept| accept.kind == PREVIOUS) else {
            return context;
        };
        let results = flow.results();
        let from = match accept.from_module.as_deref() {
            Some(name) => results.get(name).map(|envelope| (name, envelope)),
            None => results.iter().filter(|(_, envelope)| envelope.is_object()).last(),
        };
        if let Some((name, envelope)) = from.filter(|(_, envelope)| envelope.is_object()) {
            let result = json!({"module": name, "meta": envelope.get("meta"), "data": envelope.get("data")});
            context.insert(String::from(PREVIOUS), result);
        }
        context
    }

    /// Reports progress; it is dropped if the queue is full.
    fn note(&mut self, flow: &CompositionMachine, message: String) {
        let (ended, of) = flow.progress();
        self.progress_tx
            .try_send(CompositionEvent::Step { ended, of, message })
            .ok();
    }

    async fn composed(self, outcome: Outcome, mut warnings: Vec<Value>) -> CompositionResult {
        let module = &self.job.run.module;
        let mut outcome = outcome;
        let mut request = None;
        if let Outcome::Ask { input, results } = &outcome {
            let mut input = input.clone();
            // Context shared by steps reaches the model only if the module accepts it.
            let admitted = admit_context(&self.launcher, module, &self.context).await;
            context::put(
                &mut input,
                admitted.unwrap_or_else(|_| initial_context(&self.job.run.command.input)),
            );
            let ready = &self.job.ready;
            ready.insert_into(&mut input);
            let media = ready.media.clone();
            let lowered = lower_with_media(module, &input, results, media, &self.job.lower);
            let lowered = Arc::new(lowered);
            match tokens::admit(module, &lowered, &self.launcher.config.fleet) {
                Ok(()) => request = Some(lowered),
                Err(error) => {
                    outcome = Outcome::Fail {
                        error,
                        partial_data: None,
                    };
                }
            }
        }
        let emits = &module.manifest.context.emits;
        let mut emitted = self.emitted;
        emitted.retain(|kind, _| emits.iter().any(|emit| emit.kind == *kind));
        warnings.extend(self.remarks.warnings);
        warnings.truncate(limits::STEP_WARNINGS_MAX);
        CompositionResult {
            outcome,
            request,
            warnings,
            review: self.remarks.review,
            emitted,
            usage: self.usage,
            attempts: self.attempts,
        }
    }
}

const PREVIOUS: &str = "previous_result";

/// Runs a step, and its fallback if it fails.
async fn step(
    launcher: Launcher,
    job: CompositionSpec,
    start: StepStart,
    context: Map<String, Value>,
) -> StepResult {
    let requirement = &start.requirement;
    let find = |name: &str| launcher.config.modules.get(name).cloned();
    let mut end = StepResult {
        index: start.index,
        step: start.step.clone(),
        module: None,
        ended: Vec::new(),
        envelope: Map::new(),
        replaced: None,
    };
    let chosen = match resolve(requirement, &find) {
        Ok(chosen) => chosen,
        Err(absence) => {
            end.envelope = failed(ErrorBody::new(Code::E4006, absence.to_string()));
            return end;
        }
    };
    let mut module = chosen.module;
    if let Some(absence) = &chosen.fallback_reason {
        end.replaced = Some(format!("{absence}; using `{}` instead", module.name()));
    }
    if let Some(tier) = start.tier {
        module = Arc::new(module.with_tier(tier));
    }
    end.envelope = run_module(&launcher, &job, &start, module.clone(), &context, &mut end.ended).await;
    end.module = Some(module);
    let fallback = requirement.fallback.as_deref().and_then(find);
    if let Some(fallback) = fallback.filter(|_| chosen.fallback_reason.is_none() && !is_good(&end.envelope)) {
        let why = end
            .envelope
            .get("error")
            .and_then(|error| error.get("message")?.as_str());
        let why = why.unwrap_or("it failed");
        let replaced = format!(
            "`{}`: {why}; using `{}` instead",
            requirement.name,
            fallback.name()
        );
        end.replaced = Some(replaced);
        end.envelope = run_module(
            &launcher,
            &job,
            &start,
            fallback.clone(),
            &context,
            &mut end.ended,
        )
        .await;
        end.module = Some(fallback);
    }
    end
}

/// Runs one module, within the time limit of the step.
async fn run_module(
    launcher: &Launcher,
    job: &CompositionSpec,
    start: &StepStart,
    module: Arc<Module>,
    context: &Map<String, Value>,
    ended: &mut Vec<StepRun>,
) -> Map<String, Value> {
    let mut input = start.input.clone();
    match admit_context(launcher, &module, context).await {
        Ok(admitted) => context::put(&mut input, admitted),
        Err(error) => return failed(*error),
    }
    let running = child::run(launcher, job, module, input);
    let end = match start.requirement.timeout_ms {
        None => running.await,
        Some(limit_ms) => match tokio::time::timeout(Duration::from_millis(limit_ms), running).await {
            Ok(end) => end,
            Err(_) => {
                let message = format!("no answer within {limit_ms} ms");
                return failed(ErrorBody::new(Code::E2002, message).detail("allowed_ms", limit_ms));
            }
        },
    };
    let envelope = end.envelope.clone();
    ended.push(end);
    envelope
}

/// The part of a context that a module accepts.
async fn admit_context(
    launcher: &Launcher,
    module: &Arc<Module>,
    context: &Map<String, Value>,
) -> Result<Map<String, Value>, Box<ErrorBody>> {
    let mut wrapped = Map::new();
    context::put(&mut wrapped, context.clone());
    let module = module.clone();
    let check = move || context::admit(&module, &wrapped).map(|admitted| admitted.context);
    launcher.runs.schema_threads.check(check).await
}

fn is_good(envelope: &Map<String, Value>) -> bool {
    envelope.get("ok") == Some(&Value::Bool(true))
}

fn failed(error: ErrorBody) -> Map<String, Value> {
    match Envelope::failure(error).into_value() {
        Value::Object(envelope) => envelope,
        _ => Map::new(),
    }
}
