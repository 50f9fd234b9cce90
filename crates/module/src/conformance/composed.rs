//! Vectors of compositions: modules, the scripted answer of each, and the expected outcome. Driven by the
//! same state machine as real runs; only the models are replaced by the answers in the vector.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::evaluator::Finding;
use crate::compose::{CompositionMachine, Outcome, StepStart, build, resolve};
use crate::context;
use crate::envelope::{CheckOptions, Envelope, ErrorBody, check_object};
use crate::file_map::FileMap;
use crate::load::load;
use crate::lower::admit_input;
use crate::module::Module;

/// The `composition` subject of a vector.
struct CompositionVector {
    modules: BTreeMap<String, Arc<Module>>,
    root: Arc<Module>,
    input: Map<String, Value>,
    answers: Map<String, Value>,
    /// Modules expected to run, in order, if the vector states them.
    asked: Option<Vec<String>>,
}

/// The faults of the outcome; `Err` if the vector itself is malformed.
pub(super) fn judge(subject: &Value) -> Result<Vec<Finding>, String> {
    let scene = CompositionVector::read(subject)?;
    let mut called = Vec::new();
    let error = match scene.run_root(&mut called) {
        Ok(envelope) => envelope.error().cloned(),
        Err(error) => Some(*error),
    };
    if let Some(expected) = &scene.asked
        && *expected != called
    {
        let message = format!("ran {}, not {}", called.join(", "), expected.join(", "));
        return Ok(vec![Finding::new(crate::Code::E4000, "/asked", message)]);
    }
    Ok(error.iter().map(super::evaluator::of_error).collect())
}

impl CompositionVector {
    fn read(subject: &Value) -> Result<Self, String> {
        let part = |key: &str| subject.get(key).and_then(Value::as_object);
        let mut modules = BTreeMap::new();
        for (name, given) in part("modules").ok_or("`composition.modules` is not an object")? {
            modules.insert(name.clone(), Arc::new(module(name, given)?));
        }
        let root = subject.get("run").and_then(Value::as_str);
        let root = root.ok_or("`composition.run` names no module")?;
        let asked = subject.get("asked").and_then(Value::as_array).map(|names| {
            let names = names.iter().filter_map(Value::as_str);
            names.map(String::from).collect()
        });
        Ok(Self {
            root: modules
                .get(root)
                .cloned()
                .ok_or_else(|| format!("module `{root}` not found"))?,
            modules,
            input: part("input").cloned().unwrap_or_default(),
            answers: part("answers").cloned().unwrap_or_default(),
            asked,
        })
    }

    fn run_root(&self, called: &mut Vec<String>) -> Result<Envelope, Box<ErrorBody>> {
        let find = |name: &str| self.modules.get(name).cloned();
        let admitted = admit_input(&self.root, Value::Object(self.input.clone()))?;
        context::admit(&self.root, &admitted.input)?;
        build(&self.root, &find).check()?;
        Ok(self.run(&self.root, &admitted.input, called))
    }

    /// Depth is bounded: the graph check has refused cycles and chains that are too deep.
    fn run(&self, module: &Arc<Module>, input: &Map<String, Value>, called: &mut Vec<String>) -> Envelope {
        let mut flow = match CompositionMachine::new(module, input) {
            Ok(Some(flow)) => flow,
            Ok(None) => return self.answer(module, called),
            Err(error) => return Envelope::failure(*error),
        };
        let mut waiting: Vec<StepStart> = Vec::new();
        let outcome = loop {
            waiting.extend(flow.start());
            if let Some(outcome) = flow.outcome() {
                break outcome;
            }
            if waiting.is_empty() {
                return Envelope::failure(ErrorBody::new(
                    crate::Code::E4000,
                    "the composition stalled: no step can start",
                ));
            }
            let start = waiting.remove(0);
            let envelope = self.step(&start, called);
            flow.finish(start.index, envelope.into_value());
        };
        match outcome {
            Outcome::Ask { .. } => self.answer(module, called),
            Outcome::Answer(object) => check_object(module, object, &CheckOptions::default()),
            Outcome::Fail { error, .. } => Envelope::failure(*error),
        }
    }

    fn step(&self, start: &StepStart, called: &mut Vec<String>) -> Envelope {
        let find = |name: &str| self.modules.get(name).cloned();
        let chosen = match resolve(&start.requirement, &find) {
            Ok(chosen) => chosen,
            Err(absence) => {
                return Envelope::failure(ErrorBody::new(crate::Code::E4006, absence.to_string()));
            }
        };
        let first = self.admitted(&chosen.module, &start.input, called);
        let fallback = start.requirement.fallback.as_deref().and_then(find);
        match fallback.filter(|_| chosen.fallback_reason.is_none() && !first.is_ok()) {
            Some(fallback) => self.admitted(&fallback, &start.input, called),
            None => first,
        }
    }

    fn admitted(
        &self,
        module: &Arc<Module>,
        input: &Map<String, Value>,
        called: &mut Vec<String>,
    ) -> Envelope {
        match admit_input(module, Value::Object(input.clone())) {
            Ok(admitted) => self.run(module, &admitted.input, called),
            Err(error) => Envelope::failure(*error),
        }
    }

    /// The scripted answer of a module, checked against its contract.
    fn answer(&self, module: &Module, called: &mut Vec<String>) -> Envelope {
        called.push(String::from(module.name()));
        match self.answers.get(module.name()) {
            Some(Value::Object(object)) => check_object(module, object.clone(), &CheckOptions::default()),
            _ => Envelope::failure(ErrorBody::new(
                crate::Code::E4001,
                "the vector has no answer for this module",
            )),
        }
    }
}

/// A module of a vector: `manifest` as in module.yaml, with an optional prompt and schema.
fn module(name: &str, given: &Value) -> Result<Module, String> {
    let mut manifest = given
        .get("manifest")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    for (key, value) in [
        ("name", name),
        ("version", "1.0.0"),
        ("responsibility", "a part of a vector"),
        ("tier", "decision"),
    ] {
        manifest.entry(key).or_insert_with(|| Value::from(value));
    }
    let prompt = given.get("prompt").and_then(Value::as_str).unwrap_or("Answer.");
    let schema = given
        .get("schema")
        .map_or_else(|| String::from("{}"), ToString::to_string);
    let files: FileMap = [
        ("module.yaml", Value::Object(manifest).to_string()),
        ("prompt.md", String::from(prompt)),
        ("schema.json", schema),
    ]
    .into_iter()
    .collect();
    load(&files)
        .module
        .ok_or_else(|| format!("module `{name}` cannot be loaded"))
}
