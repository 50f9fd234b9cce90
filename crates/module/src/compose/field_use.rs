//! Which fields of a composition's input its steps use: in arguments, mappings and conditions. Whether the
//! called modules use them in turn is checked when they run.

use super::resolve::dependencies;
use super::step::{MappingSource, StepGraph, StepInput, StepSource};
use crate::expression::Condition;
use crate::input::FieldUse;
use crate::module::Module;

pub(crate) fn add_field_use(module: &Module, found: &mut FieldUse) {
    if dependencies(module).is_empty() {
        return;
    }
    let Ok(layout) = StepGraph::of(module) else {
        // A composition that is not valid is refused elsewhere.
        found.add_whole();
        return;
    };
    for step in &layout.steps {
        match &step.feed {
            StepInput::Composition => found.add_whole(),
            StepInput::Call(arguments) => arguments.add_field_use(found),
            StepInput::PreviousStep(_) | StepInput::Dataflow(_) => {}
        }
    }
    for line in &layout.lines {
        if line.from.contains(&StepSource::Input) && line.mapping.is_empty() {
            found.add_whole();
        }
        for (_, mapped) in &line.mapping {
            if let MappingSource::Path(path) = mapped {
                found.add_path(path);
            }
        }
    }
    let conditions = layout.lines.iter().filter_map(|line| line.condition.as_ref());
    let routes = layout.routes.iter().map(|(condition, _)| condition);
    for path in conditions.chain(routes).flat_map(Condition::paths) {
        found.add_path(path);
    }
}
