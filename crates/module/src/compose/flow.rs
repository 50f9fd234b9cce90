//! One composed run as a pure machine: which steps may start, with which input, and what the whole comes
//! to. It knows no clock and no model; whoever drives it runs what [`Flow::start`] names, tells it how each
//! ended, and asks for the outcome when nothing is left to run.
//!
//! What it keeps: a step starts once, after everything it looks at; no more run side by side than the
//! limit; a required step that failed is the end of it.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::aggregate::{aggregate, merge};
use super::outcome;
use super::results::Results;
use super::expression_scope::ExpressionScope;
use super::step::{StepInput, StepGraph, DataflowEdge, MappingSource, StepSource};
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
    /// The input of the whole, without what belongs to the runtime.
    own: Map<String, Value>,
    input: Value,
    pub(super) results: Results,
    /// The step that finished well last.
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
    /// Failed where that is allowed, or never asked.
    Skipped,
}

/// A step that is to be run now.
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

/// What a composition comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The module's own model is to be asked, with this input and these results.
    Ask {
        input: Map<String, Value>,
        results: Results,
    },
    /// The steps have made the answer; it is still to be held against the contract.
    Answer(Map<String, Value>),
    Fail {
        error: Box<ErrorBody>,
        partial_data: Option<Map<String, Value>>,
    },
}

impl CompositionMachine {
    /// The flow of a module for an input; `None` for a module that is not composed of others.
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

    /// The steps that may start now; they count as running from here on.
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
                // Nothing flows into it, so there is nothing to ask.
                None => self.leave_out(index),
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
            let message = format!("step `{id}` failed and was left out: {}", error.message);
            self.warn(Code::W3002, &message, &id);
            self.leave_out(index);
        } else {
            self.set(index, State::Skipped);
            self.failed.push(Failed { step: id, error });
        }
    }

    /// What it has come to; `None` while steps run or could be started.
    pub fn outcome(&self) -> Option<Outcome> {
        if let Some(failed) = self.failed.first() {
            return Some(self.failure(failed));
        }
        let open = (0..self.states.len()).any(|index| self.may_start(index));
        let is_over = self.is_settled && self.count(State::Running) == 0 && !open;
        is_over.then(|| outcome::of(self))
    }

    /// Ends it for a reason that lies outside, such as the time that is up.
    pub fn abort(&self, error: ErrorBody) -> Outcome {
        Outcome::Fail {
            error: Box::new(error),
            partial_data: self.partial(),
        }
    }

    /// The data of the steps that are done, by step; `None` where there is none or it may not be shown.
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

    /// How many steps have ended, and how many there can be.
    pub fn progress(&self) -> (usize, usize) {
        let ended = self.count(State::Done) + self.count(State::Skipped);
        (ended, self.states.len())
    }

    /// `_warnings` about what was left out or replaced.
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
        let alone = self.module.manifest.composition.pattern != Pattern::Parallel && !step.parallel;
        self.states.get(index) == Some(&State::Waiting)
            && !step.routed
            && !step.needs.iter().any(is_open)
            && running < limits::COMPOSITION_PARALLEL_MAX
            && !(alone && self.is_anyone_alone())
    }

    /// Whether a step runs that wants no other in its turn beside it.
    fn is_anyone_alone(&self) -> bool {
        let mut running = self.layout.steps.iter().zip(&self.states);
        running.any(|(step, state)| *state == State::Running && !step.parallel)
    }

    /// Takes the first route that holds and leads on. `true` if a step may start now.
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
                    self.leave_out(*index);
                }
                !left.is_empty()
            }
        }
    }

    /// `None` when every line that leads into the step is cut off.
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

    /// What flows along these lines together; the later wins.
    pub(super) fn merged_data(&self, lines: &[usize]) -> Option<Map<String, Value>> {
        let lines = lines.iter().filter_map(|line| self.layout.lines.get(*line));
        let values: Vec<_> = lines.filter_map(|line| self.edge_data(line)).collect();
        let mut whole = values.into_iter();
        let mut first = whole.next()?;
        for value in whole {
            merge(&mut first, value);
        }
        Some(first)
    }

    /// What one line carries; `None` when its condition does not hold or its sources are empty.
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

    /// The input for the module's own model: its own, and what flows into it.
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

    fn leave_out(&mut self, index: usize) {
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

/// What a source carries where no mapping says otherwise: of an envelope its data.
pub(super) fn payload(value: &Value) -> Value {
    match (value.get("ok"), value.get("data")) {
        (Some(Value::Bool(true)), Some(data)) => data.clone(),
        _ => value.clone(),
    }
}
