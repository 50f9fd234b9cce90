//! Dependency rules: required modules exist, versions match, no cycles, no chain deeper than allowed. Of
//! other modules only a [`ModuleSummary`] is kept: name, version and dependencies.

use std::collections::{BTreeMap, BTreeSet};

use semver::Version;

use crate::compose::calls;
use crate::diagnostic::{Diagnostic, Location, Rule, Severity};
use crate::document::EntryPart;
use crate::file_map::FileMap;
use crate::limits;
use crate::load::LoadContext;
use crate::module::Module;

/// The part of a module that the rules of other modules read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModuleSummary {
    pub name: String,
    pub version: String,
    /// The modules that it requires or calls.
    pub leads_to: Vec<String>,
}

impl ModuleSummary {
    pub fn of(module: &Module) -> Self {
        let required = module
            .manifest
            .composition
            .requires
            .iter()
            .map(|required| required.name.clone());
        let called = calls(&module.prompt)
            .flatten()
            .map(|call| String::from(call.name));
        let leads_to: BTreeSet<String> = required.chain(called).collect();
        Self {
            name: module.manifest.name.clone(),
            version: module.manifest.version.clone(),
            leads_to: leads_to.into_iter().collect(),
        }
    }

    /// The summary of a module of which only the manifest and the prompt were read.
    pub fn read(files: &FileMap) -> Option<Self> {
        crate::load(files).module.as_ref().map(Self::of)
    }
}

/// Looks up a module summary by name.
pub type FindSummary<'a> = dyn Fn(&str) -> Option<ModuleSummary> + 'a;

pub(super) fn check(reading: &mut LoadContext<'_>, find: &FindSummary<'_>) {
    let mut found = Vec::new();
    if let Some(module) = &reading.module {
        let card = ModuleSummary::of(module);
        if !card.leads_to.is_empty() {
            requirements(reading, module, find, &mut found);
            called(reading, module, find, &mut found);
            cycles(reading, module, &card, find, &mut found);
        }
    }
    reading.report.extend(found);
}

fn requirements(
    reading: &LoadContext<'_>,
    module: &Module,
    find: &FindSummary<'_>,
    found: &mut Vec<Diagnostic>,
) {
    for (index, required) in module.manifest.composition.requires.iter().enumerate() {
        let at = |key: &str| {
            reading.in_manifest(&format!("/composition/requires/{index}/{key}"), EntryPart::Value)
        };
        let Some(card) = find(&required.name) else {
            let fallback = required.fallback.as_deref();
            if required.optional || fallback.is_some_and(|name| find(name).is_some()) {
                continue;
            }
            let message = match fallback {
                Some(fallback) => format!(
                    "neither `{}` nor its fallback `{fallback}` can be found",
                    required.name
                ),
                None => format!("the required module `{}` cannot be found", required.name),
            };
            let diagnostic = Diagnostic::new(Rule::MISSING_REQUIREMENT, message).at(at("name"));
            found.push(diagnostic.hint("`cogn list` shows the available modules; or set `optional: true`"));
            continue;
        };
        let (Ok(range), Ok(version)) = (required.range(), Version::parse(&card.version)) else {
            continue;
        };
        if !range.matches(&version) {
            let wanted = required.version.as_deref().unwrap_or("*");
            let message = format!(
                "`{}` has version {version}, but {wanted} is required",
                required.name
            );
            found.push(Diagnostic::new(Rule::REQUIREMENT_VERSION, message).at(at("version")));
        }
    }
}

/// Modules that the prompt calls without requiring them.
fn called(reading: &LoadContext<'_>, module: &Module, find: &FindSummary<'_>, found: &mut Vec<Diagnostic>) {
    let requires = &module.manifest.composition.requires;
    for call in calls(&module.prompt).flatten() {
        let required = requires.iter().any(|required| required.name == call.name);
        if required || find(call.name).is_some() {
            continue;
        }
        let message = format!("the prompt calls `{}`, which cannot be found", call.name);
        let diagnostic =
            Diagnostic::new(Rule::MISSING_REQUIREMENT, message).at(reading.in_prompt(call.range));
        let severity = if call.options.optional {
            Severity::Warning
        } else {
            Severity::Error
        };
        found.push(diagnostic.severity(severity));
    }
}

/// Follows the dependencies. Each summary is fetched once, up to the limit.
fn cycles(
    reading: &LoadContext<'_>,
    module: &Module,
    card: &ModuleSummary,
    find: &FindSummary<'_>,
    found: &mut Vec<Diagnostic>,
) {
    let mut cards: BTreeMap<String, Vec<String>> = BTreeMap::new();
    cards.insert(card.name.clone(), card.leads_to.clone());
    let mut pending = card.leads_to.clone();
    while let Some(name) = pending.pop() {
        if cards.contains_key(&name) || cards.len() >= limits::COMPOSITION_MODULES_MAX {
            continue;
        }
        let next = find(&name).map(|card| card.leads_to).unwrap_or_default();
        pending.extend(next.iter().cloned());
        cards.insert(name, next);
    }
    for first in &card.leads_to {
        if let Some(path) = path_to(&cards, first, &card.name) {
            let mut names = vec![card.name.as_str()];
            names.extend(path);
            let message = format!("the modules require each other in a cycle: {}", names.join(" → "));
            let diagnostic = Diagnostic::new(Rule::COMPOSITION_CYCLE, message);
            found.push(
                diagnostic
                    .at(place_of(reading, module, first))
                    .hint("runs would not terminate (E4004)"),
            );
        }
    }
    let depth = depth(&cards, &card.name);
    let max = module.manifest.composition.max_depth;
    if found.is_empty() && depth.is_some_and(|depth| depth as u64 > max) {
        let message = format!(
            "the chain of modules is {} deep; max_depth is {max}",
            depth.unwrap_or_default()
        );
        let diagnostic = Diagnostic::new(Rule::COMPOSITION_TOO_DEEP, message);
        found.push(
            diagnostic
                .at(reading.in_manifest("/composition", EntryPart::Key))
                .hint("raise composition.max_depth, or call fewer modules in a row"),
        );
    }
}

fn place_of(reading: &LoadContext<'_>, module: &Module, name: &str) -> Location {
    let requires = &module.manifest.composition.requires;
    if let Some(index) = requires.iter().position(|required| required.name == name) {
        return reading.in_manifest(&format!("/composition/requires/{index}/name"), EntryPart::Value);
    }
    match calls(&module.prompt).flatten().find(|call| call.name == name) {
        Some(call) => reading.in_prompt(call.range),
        None => reading.in_manifest("/composition", EntryPart::Key),
    }
}

/// The shortest path from `from` to `target`, if there is one (breadth-first search).
fn path_to<'a>(
    cards: &'a BTreeMap<String, Vec<String>>,
    from: &'a str,
    target: &str,
) -> Option<Vec<&'a str>> {
    let mut came_from: BTreeMap<&str, Option<&str>> = BTreeMap::from([(from, None)]);
    let mut queue = std::collections::VecDeque::from([from]);
    while let Some(name) = queue.pop_front() {
        if name == target {
            let mut path = vec![name];
            let mut at = name;
            while let Some(Some(before)) = came_from.get(at) {
                path.push(before);
                at = before;
            }
            path.reverse();
            return Some(path);
        }
        for next in cards.get(name).into_iter().flatten() {
            if !came_from.contains_key(next.as_str()) {
                came_from.insert(next, Some(name));
                queue.push_back(next);
            }
        }
    }
    None
}

/// The depth of the longest chain of calls; `None` if there is a cycle.
fn depth(cards: &BTreeMap<String, Vec<String>>, root: &str) -> Option<usize> {
    // Layers of an acyclic graph: there are at most as many as modules.
    let mut layer: BTreeSet<&str> = BTreeSet::from([root]);
    for depth in 0..=cards.len() {
        layer = layer
            .iter()
            .filter_map(|name| cards.get(*name))
            .flatten()
            .map(String::as_str)
            .collect();
        if layer.is_empty() {
            return Some(depth);
        }
    }
    None
}
