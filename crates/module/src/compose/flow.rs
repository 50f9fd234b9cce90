//! The state machine of one composed run: which steps may start, with which input, and the outcome. It uses
//! no clock and no model. The driver runs the steps returned by [`CompositionMachine::start`], reports each
//! result with [`CompositionMachine::finish`] and reads [`CompositionMachine::outcome`].
//!
//! Invariants: a step starts once, after all steps that it depends on; the number of parallel steps is
//! limited; a failed required step ends the composition.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::aggregate::{aggregate, merge};
use super::expression_scope::ExpressionScope;
use super::outcome;
use super::results::Results;
use super::step::{DataflowEdge, MappingSource, StepGraph, StepInput, StepSource};
use crate::code::Code;
use crate::envelope::ErrorBody;
use crate::expression::Variables as _;
use crate::limits;
use crate::manifest::{Pattern, Requirement, Tier};
use crate::module::Module;

#[derive(Debug)]
pub struct CompositionMachine {
    pub(super) module: Arc<Module>,
    pub(super) layout: StepGraph,
    states: Vec<State>,
    /// The input of the composition, without keys of the runtime (`_...`).
    own: Map<String, Value>,
    input: Value,
    pub(super) results: Results,
    /// The step that finished successfully last.
    pub(super) current: Option<usize>,
    failed: Vec<Failed>,
    warnings: Vec<Value>,
    is_settled: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    Running,
    Done,
    /// Failed, or never started.
    Skipped,
}

/// A step to run now.
#[derive(Clone, Debug)]
pub struct StepStart {
    pub index: usize,
    pub step: String,
    pub requirement: Requirement,
    pub tier: Option<Tier>,
    pub input: Map<String, Value>,
}

/// A required step that failed.
#[derive(Clone, Debug)]
struct Failed {
    step: String,
    error: ErrorBody,
}

/// The outcome of a composition.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The module's own model must be called, with this input and these results.
    Ask {
        input: Map<String, Value>,
        results: Results,
    },
    /// The answer, composed of results; not yet checked against the contract.
    Answer(Map<String, Value>),
    Fail {
        error: Box<ErrorBody>,
        partial_data: Option<Map<String, Value>>,
    },
}

impl CompositionMachine {
    /// The state machine of a module for an input; `None` for a module without steps.
    pub fn new(module: &Arc<Module>, input: &Map<String, Value>) -> Result<Option<Self>, Box<ErrorBody>> {
        let layout = StepGraph::of(module)?;
        if layout.steps.is_empty() {
            return Ok(None);
        }
        let own = input.iter().filter(|(key, _)| !key.starts_with('_'));
        let own: Map<String, Value> = own.map(|(key, value)| (key.clone(), value.clone())).collect();
        Ok(Some(Self {
            module: module.clone(),
            states: vec![State::Waiting; layout.steps.len()],
            input: Value::Object(own.clone()),
            own,
            layout,
            results: Results::default(),
            current: None,
            failed: Vec::new(),
            warnings: Vec::new(),
            is_settled: false,
        }))
    }

    /// The steps that may start now; they are marked as running.
    pub fn start(&mut self) -> Vec<StepStart> {
        let mut starts = Vec::new();
        if !self.failed.is_empty() {
            return starts;
        }
        loop {
            let Some(index) = (0..self.states.len()).find(|index| self.may_start(*index)) else {
                if self.count(State::Running) == 0 && starts.is_empty() && self.follow_route() {
                    continue;
                }
                return starts;
            };
            match self.input_of(index) {
                Some(input) => {
                    self.set(index, State::Running);
                    starts.extend(self.layout.steps.get(index).map(|step| StepStart {
                        index,
                        step: step.id.clone(),
                        requirement: step.requirement.clone(),
                        tier: step.tier,
                        input,
                    }));
                }
                // No data flows into the step, so it is skipped.
                None => self.skip(index),
            }
        }
    }

    /// A step has ended with an envelope.
    pub fn finish(&mut self, index: usize, envelope: Value) {
        let Some(step) = self.layout.steps.get(index) else {
            return;
        };
        if envelope.get("ok") == Some(&Value::Bool(true)) {
            self.results.insert(&step.id, envelope);
            self.current = Some(index);
            self.set(index, State::Done);
            return;
        }
        let error = match envelope.get("error") {
            Some(Value::Object(error)) => ErrorBody::from_map(error.clone()),
            _ => ErrorBody::new(Code::E4000, "the step ended without an answer"),
        };
        let id = step.id.clone();
        if step.requirement.optional {
            let message = format!("optional step `{id}` failed: {}", error.message);
            self.warn(Code::W3002, &message, &id);
            self.skip(index);
        } else {
            self.set(index, State::Skipped);
            self.failed.push(Failed { step: id, error });
        }
    }

    /// The outcome; `None` while steps run or may start.
    pub fn outcome(&self) -> Option<Outcome> {
        if let Some(failed) = self.failed.first() {
            return Some(self.failure(failed));
        }
        let open = (0..self.states.len()).any(|index| self.may_start(index));
        let is_over = self.is_settled && self.count(State::Running) == 0 && !open;
        is_over.then(|| outcome::of(self))
    }

    /// Ends the composition for an external reason, such as a timeout.
    pub fn abort(&self, error: ErrorBody) -> Outcome {
        Outcome::Fail {
            error: Box::new(error),
            partial_data: self.partial(),
        }
    }

    /// The data of the finished steps, by step; `None` if there is none or partial data is not allowed.
    fn partial(&self) -> Option<Map<String, Value>> {
        let mut partial = Map::new();
        for step in &self.layout.steps {
            let envelope = self.results.get(&step.id).filter(|envelope| envelope.is_object());
            if let Some(data) = envelope.and_then(|envelope| envelope.get("data")) {
                partial.insert(step.id.clone(), data.clone());
            }
        }
        let allowed = self.module.manifest.failure.partial_allowed;
        (allowed && !partial.is_empty()).then_some(partial)
    }

    /// Number of ended steps and of all steps.
    pub fn progress(&self) -> (usize, usize) {
        let ended = self.count(State::Done) + self.count(State::Skipped);
        (ended, self.states.len())
    }

    /// `_warnings` about skipped steps and fallbacks.
    pub fn warnings(&self) -> &[Value] {
        &self.warnings
    }

    pub fn warn(&mut self, code: Code, message: &str, step: &str) {
        let warning = json!({"code": code.as_str(), "message": message, "step": step});
        self.warnings.push(warning);
    }

    /// The envelopes so far.
    pub fn results(&self) -> &Results {
        &self.results
    }

    fn may_start(&self, index: usize) -> bool {
        let Some(step) = self.layout.steps.get(index) else {
            return false;
        };
        let is_open =
            |index: &usize| matches!(self.states.get(*index), Some(State::Waiting | State::Running));
        let running = self.count(State::Running);
        let exclusive = self.module.manifest.composition.pattern != Pattern::Parallel && !step.parallel;
        self.states.get(index) == Some(&State::Waiting)
            && !step.routed
            && !step.needs.iter().any(is_open)
            && running < limits::COMPOSITION_PARALLEL_MAX
            && !(exclusive && self.is_exclusive_step_running())
    }

    /// Whether a step is running that must not run in parallel with other steps.
    fn is_exclusive_step_running(&self) -> bool {
        let mut running = self.layout.steps.iter().zip(&self.states);
        running.any(|(step, state)| *state == State::Running && !step.parallel)
    }

    /// Takes the first matching route to a step that has not started. `true` if a step may start now.
    fn follow_route(&mut self) -> bool {
        if self.is_settled {
            return false;
        }
        let view = self.view(None);
        let routes = self.layout.routes.iter();
        let mut open = routes.filter(|(condition, next)| {
            let is_new = |next: &String| {
                let index = self.layout.position(next);
                index.and_then(|index| self.states.get(index)) == Some(&State::Waiting)
            };
            next.as_ref().is_none_or(is_new) && condition.holds(&view)
        });
        let next = open.next().and_then(|(_, next)| next.clone());
        match next.and_then(|next| self.layout.position(&next)) {
            Some(index) => {
                if let Some(step) = self.layout.steps.get_mut(index) {
                    step.routed = false;
                }
                true
            }
            None => {
                self.is_settled = true;
                let left: Vec<usize> = (0..self.states.len())
                    .filter(|index| self.layout.steps.get(*index).is_some_and(|step| step.routed))
                    .collect();
                for index in &left {
                    self.skip(*index);
                }
                !left.is_empty()
            }
        }
    }

    /// The input of a step; `None` if no dataflow edge into it carries data.
    fn input_of(&self, index: usize) -> Option<Map<String, Value>> {
        let step = self.layout.steps.get(index)?;
        match &step.feed {
            StepInput::Composition => Some(self.own.clone()),
            StepInput::PreviousStep(before) => {
                let id = &self.layout.steps.get(*before)?.id;
                let data = self.results.get(id)?.get("data")?;
                data.as_object().cloned()
            }
            StepInput::Call(arguments) => Some(arguments.input(&self.view(None), &self.own)),
            StepInput::Dataflow(lines) => self.merged_data(lines),
        }
    }

    /// The merged data of these dataflow edges; later edges take precedence.
    pub(super) fn merged_data(&self, lines: &[usize]) -> Option<Map<String, Value>> {
        let lines = lines.iter().filter_map(|line| self.layout.lines.get(*line));
        let values: Vec<_> = lines.filter_map(|line| self.edge_data(line)).collect();
        let mut values = values.into_iter();
        let mut first = values.next()?;
        for value in values {
            merge(&mut first, value);
        }
        Some(first)
    }

    /// The data of one dataflow edge; `None` if its condition is false or its sources are empty.
    fn edge_data(&self, line: &DataflowEdge) -> Option<Map<String, Value>> {
        let sources: Vec<(&str, &Value)> = line.from.iter().filter_map(|from| self.source(from)).collect();
        let single = match (line.from.len(), sources.first()) {
            (_, None) => return None,
            (1, Some((_, value))) => Some(*value),
            _ => None,
        };
        let view = self.view(single);
        if line
            .condition
            .as_ref()
            .is_some_and(|condition| !condition.holds(&view))
        {
            return None;
        }
        if line.mapping.is_empty() {
            let values = sources.into_iter().map(|(name, value)| (name, payload(value)));
            return Some(aggregate(values.collect(), line.aggregate));
        }
        let mapped = line.mapping.iter().filter_map(|(field, mapped)| {
            let value = match mapped {
                MappingSource::Constant(text) => Value::String(text.clone()),
                MappingSource::Path(path) => view.find(path)?.into_owned(),
            };
            Some((field.clone(), value))
        });
        Some(mapped.collect())
    }

    fn source<'a>(&'a self, source: &'a StepSource) -> Option<(&'a str, &'a Value)> {
        match source {
            StepSource::Input => Some(("input", &self.input)),
            StepSource::Step { id, part } => {
                let envelope = self.results.get(id).filter(|envelope| !envelope.is_null())?;
                let value = match part {
                    None => envelope,
                    Some(part) => part.split('.').try_fold(envelope, |value, key| value.get(key))?,
                };
                Some((id, value))
            }
        }
    }

    fn view<'a>(&'a self, source: Option<&'a Value>) -> ExpressionScope<'a> {
        ExpressionScope {
            results: &self.results,
            input: &self.input,
            source,
            current: self
                .current
                .and_then(|index| Some(self.layout.steps.get(index)?.id.as_str())),
        }
    }

    /// The input for the module's own model: the input of the composition and the data that flows into it.
    pub(super) fn own_input(&self) -> Map<String, Value> {
        let mut input = self.own.clone();
        if let Some(more) = self.merged_data(&self.layout.lines_into(self.module.name())) {
            merge(&mut input, more);
        }
        input
    }

    fn failure(&self, failed: &Failed) -> Outcome {
        let message = format!("step `{}` failed: {}", failed.step, failed.error.message);
        let Some(mut partial) = self.partial() else {
            let mut error = failed.error.clone().detail("step", failed.step.as_str());
            error.message = message;
            return Outcome::Fail {
                error: Box::new(error),
                partial_data: None,
            };
        };
        let listed = self.failed.iter().map(
            |failed| json!({"step": failed.step, "code": failed.error.code, "message": failed.error.message}),
        );
        let mut error = ErrorBody::new(Code::E3002, message).detail("failed", listed.collect::<Vec<_>>());
        error.recoverable = failed.error.recoverable;
        for failed in &self.failed {
            partial.insert(failed.step.clone(), Value::Null);
        }
        Outcome::Fail {
            error: Box::new(error),
            partial_data: Some(partial),
        }
    }

    fn skip(&mut self, index: usize) {
        self.set(index, State::Skipped);
        if let Some(step) = self.layout.steps.get(index) {
            self.results.insert(&step.id, Value::Null);
        }
    }

    fn set(&mut self, index: usize, state: State) {
        if let Some(slot) = self.states.get_mut(index) {
            *slot = state;
        }
    }

    fn count(&self, state: State) -> usize {
        self.states.iter().filter(|known| **known == state).count()
    }
}

/// The value of a source without a mapping: `data` of a successful envelope, else the value itself.
pub(super) fn payload(value: &Value) -> Value {
    match (value.get("ok"), value.get("data")) {
        (Some(Value::Bool(true)), Some(data)) => data.clone(),
        _ => value.clone(),
    }
}
