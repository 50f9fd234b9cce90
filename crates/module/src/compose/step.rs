//! The steps of a composition and their inputs, derived from the manifest and the prompt.

use std::collections::BTreeSet;

use super::arguments::Arguments;
use super::call::calls;
use crate::code::Code;
use crate::envelope::ErrorBody;
use crate::expression::{Condition, Path, PathSegment, parse_condition, parse_path};
use crate::limits;
use crate::manifest::{Aggregate, Composition, Pattern, Requirement, Tier};
use crate::module::Module;

/// One call of a module within a composition.
#[derive(Clone, Debug)]
pub(super) struct Step {
    /// The module's name; the second call of the same module is `name#2`.
    pub(super) id: String,
    pub(super) requirement: Requirement,
    pub(super) tier: Option<Tier>,
    pub(super) feed: StepInput,
    /// The steps whose results it depends on.
    pub(super) needs: BTreeSet<usize>,
    /// May run in parallel with others, independent of the pattern.
    pub(super) parallel: bool,
    /// Must not start until a route selects it.
    pub(super) routed: bool,
}

/// The source of a step's input.
#[derive(Clone, Debug)]
pub(super) enum StepInput {
    /// The input of the composition.
    Composition,
    /// The data of the previous step.
    PreviousStep(usize),
    /// The dataflow edges into the step.
    Dataflow(Vec<usize>),
    Call(Arguments),
}

/// An entry of `composition.dataflow`.
#[derive(Clone, Debug)]
pub(super) struct DataflowEdge {
    pub(super) from: Vec<StepSource>,
    pub(super) to: Vec<String>,
    pub(super) mapping: Vec<(String, MappingSource)>,
    pub(super) condition: Option<Condition>,
    pub(super) aggregate: Aggregate,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StepSource {
    Input,
    /// A step, or one part of its envelope.
    Step {
        id: String,
        part: Option<String>,
    },
}

#[derive(Clone, Debug)]
pub(super) enum MappingSource {
    Path(Path),
    Constant(String),
}

/// Steps, dataflow edges and routes of a module.
#[derive(Clone, Debug, Default)]
pub(super) struct StepGraph {
    pub(super) steps: Vec<Step>,
    pub(super) lines: Vec<DataflowEdge>,
    pub(super) routes: Vec<(Condition, Option<String>)>,
}

impl StepGraph {
    pub(super) fn of(module: &Module) -> Result<Self, Box<ErrorBody>> {
        let composition = &module.manifest.composition;
        let mut layout = Self::default();
        for (index, flow) in composition.dataflow.iter().enumerate() {
            let at = |part: &str| format!("composition.dataflow[{index}].{part}");
            let mut mapping = Vec::new();
            for (field, text) in &flow.mapping {
                let mapped = match text.trim_start().starts_with('$') {
                    false => MappingSource::Constant(text.clone()),
                    true => {
                        MappingSource::Path(parse_path(text).map_err(|why| unusable(&at("mapping"), &why))?)
                    }
                };
                mapping.push((field.clone(), mapped));
            }
            let condition = flow.condition.as_deref().map(parse_condition).transpose();
            layout.lines.push(DataflowEdge {
                from: flow.from.iter().map(|name| source(name)).collect(),
                to: flow.to.iter().map(|name| String::from(first(name))).collect(),
                mapping,
                condition: condition.map_err(|why| unusable(&at("condition"), &why))?,
                aggregate: flow.aggregate.unwrap_or(Aggregate::Merge),
            });
        }
        if composition.pattern == Pattern::Conditional {
            for (index, route) in composition.routing.iter().enumerate() {
                let at = format!("composition.routing[{index}].condition");
                let condition = parse_condition(&route.condition).map_err(|why| unusable(&at, &why))?;
                layout.routes.push((condition, route.next.clone()));
            }
        }
        layout.add_calls(module);
        layout.add_required(module.name(), composition);
        if layout.steps.len() > limits::COMPOSITION_STEPS_MAX {
            let message = format!("a composition of {} steps", layout.steps.len());
            let error = ErrorBody::new(Code::E4005, message);
            return Err(Box::new(error.detail("allowed", limits::COMPOSITION_STEPS_MAX)));
        }
        layout.find_needs(module)?;
        Ok(layout)
    }

    fn add_calls(&mut self, module: &Module) {
        let requires = &module.manifest.composition.requires;
        for call in calls(&module.prompt).flatten() {
            let earlier = self
                .steps
                .iter()
                .filter(|step| step.requirement.name == call.name);
            let id = match earlier.count() {
                0 => String::from(call.name),
                count => format!("{}#{}", call.name, count + 1),
            };
            let known = requires.iter().find(|required| required.name == call.name);
            let mut requirement = known.cloned().unwrap_or_else(|| Requirement {
                name: String::from(call.name),
                timeout_ms: Some(limits::CALL_TIMEOUT_MS),
                ..Requirement::default()
            });
            requirement.optional |= call.options.optional;
            requirement.timeout_ms = call.options.timeout_ms.or(requirement.timeout_ms);
            self.steps.push(Step {
                id,
                requirement,
                tier: call.options.tier,
                feed: StepInput::Call(Arguments::read(call.arguments)),
                needs: BTreeSet::new(),
                parallel: call.options.beside,
                routed: false,
            });
        }
    }

    /// Adds the required modules that run as steps: those with dataflow edges or routes, or all of them if
    /// there are neither dataflow edges nor calls in the prompt.
    fn add_required(&mut self, own: &str, composition: &Composition) {
        let has_calls = !self.steps.is_empty();
        let is_open = self.lines.is_empty() && !has_calls;
        let conditional = composition.pattern == Pattern::Conditional;
        let mut names: Vec<&Requirement> = Vec::new();
        let in_flow_order = composition.dataflow.iter().flat_map(|flow| &flow.to);
        let in_flow_order = in_flow_order.filter_map(|name| {
            let found = composition.requires.iter();
            found.into_iter().find(|required| required.name == first(name))
        });
        for required in in_flow_order.chain(&composition.requires) {
            let is_new = names.iter().all(|known| known.name != required.name);
            let is_called = self.steps.iter().any(|step| step.id == required.name);
            if is_new && !is_called && required.name != own {
                names.push(required);
            }
        }
        let is_target = |name: &str| self.routes.iter().any(|(_, next)| next.as_deref() == Some(name));
        let is_entry = |name: &str| {
            names
                .iter()
                .map(|required| required.name.as_str())
                .find(|name| !is_target(name))
                == Some(name)
        };
        let mut steps = Vec::new();
        let mut before = None;
        for required in &names {
            let name = required.name.as_str();
            let into: Vec<usize> = self.lines_into(name);
            let feeds_others = self.lines.iter().any(|line| line.comes_from(name));
            let routed = is_target(name);
            let runs = match (conditional, is_open) {
                _ if !into.is_empty() || feeds_others || routed => true,
                (true, _) => self.lines.is_empty() && is_entry(name),
                (false, is_open) => is_open,
            };
            if !runs {
                continue;
            }
            let feed = match (into.is_empty(), before) {
                (false, _) => StepInput::Dataflow(into),
                (true, Some(before)) if is_open && composition.pattern == Pattern::Sequential => {
                    StepInput::PreviousStep(before)
                }
                (true, _) => StepInput::Composition,
            };
            before = Some(self.steps.len() + steps.len());
            steps.push(Step {
                id: String::from(name),
                requirement: (*required).clone(),
                tier: None,
                feed,
                needs: BTreeSet::new(),
                parallel: false,
                routed,
            });
        }
        self.steps.extend(steps);
    }

    pub(super) fn lines_into(&self, name: &str) -> Vec<usize> {
        let lines = self.lines.iter().enumerate();
        let into = lines.filter(|(_, line)| line.to.iter().any(|to| to == name));
        into.map(|(index, _)| index).collect()
    }

    pub(super) fn position(&self, id: &str) -> Option<usize> {
        self.steps.iter().position(|step| step.id == id)
    }

    fn find_needs(&mut self, module: &Module) -> Result<(), Box<ErrorBody>> {
        for line in &self.lines {
            for source in &line.from {
                if let StepSource::Step { id, .. } = source
                    && self.position(id).is_none()
                {
                    return Err(unknown_step(id, module.name()));
                }
            }
            for id in &line.to {
                if id != "output" && id != module.name() && self.position(id).is_none() {
                    return Err(unknown_step(id, module.name()));
                }
            }
        }
        for (_, next) in &self.routes {
            if let Some(next) = next.as_deref().filter(|next| self.position(next).is_none()) {
                return Err(unknown_step(next, module.name()));
            }
        }
        let needs: Vec<BTreeSet<usize>> = (0..self.steps.len()).map(|index| self.needs_of(index)).collect();
        for (step, needs) in self.steps.iter_mut().zip(needs) {
            step.needs = needs;
        }
        self.refuse_cycles()
    }

    fn needs_of(&self, index: usize) -> BTreeSet<usize> {
        let mut names: Vec<String> = Vec::new();
        let Some(step) = self.steps.get(index) else {
            return BTreeSet::new();
        };
        match &step.feed {
            StepInput::Composition => {}
            StepInput::PreviousStep(before) => return BTreeSet::from([*before]),
            StepInput::Call(arguments) => names.extend(arguments.paths().iter().filter_map(first_name)),
            StepInput::Dataflow(lines) => {
                for line in lines.iter().filter_map(|line| self.lines.get(*line)) {
                    names.extend(line.from.iter().filter_map(|source| match source {
                        StepSource::Input => None,
                        StepSource::Step { id, .. } => Some(id.clone()),
                    }));
                    let condition = line.condition.iter().flat_map(Condition::paths);
                    names.extend(condition.filter_map(first_name));
                    names.extend(line.mapping.iter().filter_map(|(_, mapped)| match mapped {
                        MappingSource::Path(path) => first_name(path),
                        MappingSource::Constant(_) => None,
                    }));
                }
            }
        }
        let needs = names.iter().filter_map(|name| self.position(name));
        needs.filter(|needed| *needed != index).collect()
    }

    /// Refuses cycles in the dataflow.
    fn refuse_cycles(&self) -> Result<(), Box<ErrorBody>> {
        let mut waiting: BTreeSet<usize> = (0..self.steps.len()).collect();
        loop {
            let free: Vec<usize> = waiting
                .iter()
                .filter(|index| {
                    self.steps
                        .get(**index)
                        .is_some_and(|step| step.needs.is_disjoint(&waiting))
                })
                .copied()
                .collect();
            if free.is_empty() {
                break;
            }
            for index in free {
                waiting.remove(&index);
            }
        }
        let ids: Vec<&str> = waiting
            .iter()
            .filter_map(|index| self.steps.get(*index))
            .map(|step| step.id.as_str())
            .collect();
        if ids.is_empty() {
            return Ok(());
        }
        let message = format!(
            "Circular dependency detected: the dataflow has a cycle among {}",
            ids.join(", ")
        );
        Err(Box::new(
            ErrorBody::new(Code::E4004, message).detail("steps", ids),
        ))
    }
}

impl DataflowEdge {
    fn comes_from(&self, name: &str) -> bool {
        let is = |source: &StepSource| matches!(source, StepSource::Step { id, .. } if id == name);
        self.from.iter().any(is)
    }
}

/// Parses `triage`, `triage.output` and `triage.data`; `output` is the complete envelope.
fn source(name: &str) -> StepSource {
    if name == "input" {
        return StepSource::Input;
    }
    let part = name.split_once('.').map(|(_, part)| part);
    StepSource::Step {
        id: String::from(first(name)),
        part: part.filter(|part| *part != "output").map(String::from),
    }
}

fn first(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

fn first_name(path: &Path) -> Option<String> {
    match path.segments.first() {
        Some(PathSegment::Name(name)) => Some(name.clone()),
        _ => None,
    }
}

fn unusable(place: &str, why: &dyn std::fmt::Display) -> Box<ErrorBody> {
    let error = ErrorBody::new(Code::E1004, format!("{place} is invalid: {why}"))
        .suggest("`cogn validate` shows the position");
    Box::new(error)
}

fn unknown_step(id: &str, own: &str) -> Box<ErrorBody> {
    let message = match id == own {
        true => format!("no step can follow the answer of `{own}` itself"),
        false => format!("the dataflow of `{own}` names `{id}`, which is not one of its steps"),
    };
    let error = ErrorBody::new(Code::E1006, message).suggest("`cogn validate` shows the position");
    Box::new(error)
}
