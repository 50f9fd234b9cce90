//! Composition rules that need only one module: version ranges and expressions can be parsed, steps are
//! declared. Rules about other modules are in [`super::dependencies`].

use std::collections::BTreeSet;

use serde_json::Value;

use crate::diagnostic::{Diagnostic, Rule, nearest};
use crate::document::{EntryPart, join};
use crate::expression::{parse_condition, parse_path};
use crate::load::LoadContext;

pub(super) fn check(reading: &mut LoadContext<'_>) {
    let mut found = Vec::new();
    if let Some(module) = &reading.module
        && let Some(composition) = module.source.get("composition")
    {
        ranges(reading, &mut found);
        // Read from the source: an error elsewhere in the section must not make its steps unknown.
        let requires = composition.get("requires").and_then(Value::as_array);
        let steps: BTreeSet<&str> = requires
            .into_iter()
            .flatten()
            .flat_map(|required| [required.get("name"), required.get("fallback")])
            .filter_map(|name| name?.as_str())
            .collect();
        let own = module.manifest.name.as_str();
        let checker = CompositionCheck { reading, steps, own };
        checker.dataflow(composition, &mut found);
        checker.routing(composition, &mut found);
    }
    reading.report.extend(found);
}

fn ranges(reading: &LoadContext<'_>, found: &mut Vec<Diagnostic>) {
    let Some(module) = &reading.module else { return };
    for (index, required) in module.manifest.composition.requires.iter().enumerate() {
        if let Err(error) = required.range() {
            let range = required.version.as_deref().unwrap_or_default();
            let message = format!("`{range}` is not a version range: {error}");
            let place = reading.in_manifest(
                &format!("/composition/requires/{index}/version"),
                EntryPart::Value,
            );
            let diagnostic = Diagnostic::new(Rule::BAD_VERSION_RANGE, message).at(place);
            found.push(diagnostic.hint("write `1.2.3`, `>=1.0.0`, `^2.0.0`, `~1.4` or `*`"));
        }
    }
}

struct CompositionCheck<'a> {
    reading: &'a LoadContext<'a>,
    steps: BTreeSet<&'a str>,
    own: &'a str,
}

impl CompositionCheck<'_> {
    fn dataflow(&self, composition: &Value, found: &mut Vec<Diagnostic>) {
        let flows = composition.get("dataflow").and_then(Value::as_array);
        for (index, flow) in flows.into_iter().flatten().enumerate() {
            let at = join("/composition/dataflow", &index.to_string());
            for (key, end) in [("from", "input"), ("to", "output")] {
                let pointer = join(&at, key);
                match flow.get(key) {
                    Some(Value::String(name)) => self.step(&pointer, name, end, found),
                    Some(Value::Array(names)) => {
                        for (index, name) in names.iter().enumerate() {
                            if let Some(name) = name.as_str() {
                                self.step(&join(&pointer, &index.to_string()), name, end, found);
                            }
                        }
                    }
                    _ => {}
                }
            }
            for (field, path) in flow
                .get("mapping")
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
            {
                // A mapping without `$` is a constant.
                if let Some(path) = path.as_str().filter(|path| path.trim_start().starts_with('$'))
                    && let Err(error) = parse_path(path)
                {
                    let pointer = join(&join(&at, "mapping"), field);
                    self.bad_expression(&pointer, path, &error.to_string(), found);
                }
            }
            self.condition(&join(&at, "condition"), flow.get("condition"), found);
        }
    }

    fn routing(&self, composition: &Value, found: &mut Vec<Diagnostic>) {
        let routes = composition.get("routing").and_then(Value::as_array);
        for (index, route) in routes.into_iter().flatten().enumerate() {
            let at = join("/composition/routing", &index.to_string());
            self.condition(&join(&at, "condition"), route.get("condition"), found);
            if let Some(name) = route.get("next").and_then(Value::as_str) {
                self.step(&join(&at, "next"), name, "output", found);
            }
        }
    }

    fn condition(&self, pointer: &str, condition: Option<&Value>, found: &mut Vec<Diagnostic>) {
        if let Some(text) = condition.and_then(Value::as_str)
            && let Err(error) = parse_condition(text)
        {
            self.bad_expression(pointer, text, &error.to_string(), found);
        }
    }

    fn bad_expression(&self, pointer: &str, text: &str, why: &str, found: &mut Vec<Diagnostic>) {
        let message = format!("`{text}` cannot be parsed: {why}");
        let place = self.reading.in_manifest(pointer, EntryPart::Value);
        let diagnostic = Diagnostic::new(Rule::BAD_EXPRESSION, message).at(place);
        found.push(diagnostic.hint("for example `$.triage.meta.confidence > 0.8 && exists($.triage.data)`"));
    }

    /// A step is a required module, the module itself, or an end of the flow. It may refer to a part:
    /// `triage.data`.
    fn step(&self, pointer: &str, name: &str, end: &str, found: &mut Vec<Diagnostic>) {
        let step = name.split('.').next().unwrap_or(name);
        if step == end || step == self.own || self.steps.contains(step) {
            return;
        }
        let message = format!("`{step}` is not among the required modules");
        let place = self.reading.in_manifest(pointer, EntryPart::Value);
        let known = self.steps.iter().copied().chain([end]);
        let hint = match nearest(step, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => String::from("add it to `composition.requires`"),
        };
        found.push(Diagnostic::new(Rule::UNKNOWN_STEP, message).at(place).hint(hint));
    }
}
