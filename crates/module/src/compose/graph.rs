//! The dependency graph of a module, checked before any step runs: cycles (E4004), chains that are too deep
//! (E4005), unresolved modules (E4006) and modules that may not be called here (E4007).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::resolve::{Dependency, FindModule, ResolveError, Resolved, dependencies, resolve};
use crate::code::Code;
use crate::envelope::ErrorBody;
use crate::limits;
use crate::manifest::Access;
use crate::module::Module;

/// The modules of a composition by name, the root among them.
#[derive(Clone, Debug)]
pub struct Graph {
    pub root: String,
    pub nodes: BTreeMap<String, Node>,
    /// Each cycle once, with its first name repeated at the end.
    pub cycles: Vec<Vec<String>>,
    /// Number of calls in the longest chain; `None` if there is a cycle.
    pub depth: Option<usize>,
    max_depth: u64,
    problems: Vec<ErrorBody>,
}

#[derive(Clone, Debug)]
pub struct Node {
    pub module: Arc<Module>,
    pub links: Vec<(Dependency, Result<Resolved, ResolveError>)>,
}

impl Node {
    fn new(module: Arc<Module>, find: &FindModule<'_>) -> Self {
        let links = dependencies(&module).into_iter().map(|link| {
            let choice = resolve(&link.requirement, find);
            (link, choice)
        });
        Self {
            links: links.collect(),
            module,
        }
    }

    /// The modules that may run, including fallbacks.
    fn leads_to<'a>(&'a self, find: &'a FindModule<'_>) -> impl Iterator<Item = Arc<Module>> + 'a {
        self.links.iter().flat_map(move |(link, choice)| {
            let chosen = choice.as_ref().ok().map(|choice| choice.module.clone());
            let fallback = link.requirement.fallback.as_deref().and_then(find);
            chosen.into_iter().chain(fallback)
        })
    }
}

/// Builds the dependency graph of `root`.
pub fn build(root: &Arc<Module>, find: &FindModule<'_>) -> Graph {
    let mut graph = Graph {
        root: String::from(root.name()),
        nodes: BTreeMap::new(),
        cycles: Vec::new(),
        depth: None,
        max_depth: root.manifest.composition.max_depth,
        problems: Vec::new(),
    };
    let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut pending = vec![root.clone()];
    while let Some(module) = pending.pop() {
        let name = String::from(module.name());
        if graph.nodes.contains_key(&name) {
            continue;
        }
        if graph.nodes.len() >= limits::COMPOSITION_MODULES_MAX {
            let message = format!("more than {} modules", limits::COMPOSITION_MODULES_MAX);
            graph.problems.push(ErrorBody::new(Code::E4005, message));
            break;
        }
        let node = Node::new(module, find);
        let next: Vec<_> = node.leads_to(find).collect();
        edges.insert(
            name.clone(),
            next.iter().map(|module| String::from(module.name())).collect(),
        );
        pending.extend(next);
        graph.nodes.insert(name, node);
    }
    graph.cycles = cycles(&graph.root, &edges);
    if graph.cycles.is_empty() {
        graph.depth = Some(depth(&graph.root, &edges, &mut BTreeMap::new()));
    }
    graph.find_unresolved();
    graph.find_denials(&edges);
    graph
}

impl Graph {
    /// Whether the composition may run, and if not, the first reason.
    pub fn check(&self) -> Result<(), Box<ErrorBody>> {
        match self.errors().into_iter().next() {
            Some(error) => Err(Box::new(error)),
            None => Ok(()),
        }
    }

    /// All reasons why the composition may not run.
    pub fn errors(&self) -> Vec<ErrorBody> {
        let mut errors: Vec<ErrorBody> = Vec::new();
        for cycle in &self.cycles {
            let message = format!("Circular dependency detected: {}", cycle.join(" → "));
            errors.push(ErrorBody::new(Code::E4004, message).detail("cycle", cycle.clone()));
        }
        if let Some(depth) = self.depth.filter(|depth| *depth as u64 > self.max_depth) {
            let message = format!("Maximum composition depth ({}) exceeded", self.max_depth);
            let error = ErrorBody::new(Code::E4005, message);
            errors.push(error.detail("allowed", self.max_depth).detail("actual", depth));
        }
        errors.extend(self.problems.iter().cloned());
        errors
    }

    /// Finds missing modules that are required and have no fallback.
    fn find_unresolved(&mut self) {
        let mut needed = vec![self.root.clone()];
        let mut seen = BTreeSet::new();
        let mut found = Vec::new();
        while let Some(name) = needed.pop() {
            let Some(node) = self.nodes.get(&name).filter(|_| seen.insert(name.clone())) else {
                continue;
            };
            for (link, choice) in node.links.iter().filter(|(link, _)| !link.requirement.optional) {
                match choice {
                    Err(absence) => found.push(absence.clone().into_error(&name)),
                    Ok(choice) if link.requirement.fallback.is_none() => {
                        needed.push(String::from(choice.module.name()));
                    }
                    Ok(_) => {}
                }
            }
        }
        self.problems.extend(found);
    }

    /// Finds modules that allow a policy which a caller denies, and modules that other modules may not call.
    fn find_denials(&mut self, edges: &BTreeMap<String, BTreeSet<String>>) {
        let mut denied: BTreeMap<&str, BTreeMap<&str, &str>> = BTreeMap::new();
        let mut pending = vec![self.root.as_str()];
        let mut found: BTreeMap<(String, String), ErrorBody> = BTreeMap::new();
        while let Some(name) = pending.pop() {
            let Some(node) = self.nodes.get(name) else {
                continue;
            };
            let mut bans = denied.get(name).cloned().unwrap_or_default();
            for (policy, access) in &node.module.manifest.policies.0 {
                if *access == Access::Deny {
                    bans.entry(policy).or_insert(name);
                }
            }
            for next in edges.get(name).into_iter().flatten() {
                let Some(callee) = self.nodes.get(next) else {
                    continue;
                };
                for error in refusals(name, &callee.module, &bans) {
                    found
                        .entry((next.clone(), error.message.clone()))
                        .or_insert(error);
                }
                let known = denied.entry(next);
                let is_new = matches!(known, std::collections::btree_map::Entry::Vacant(_));
                let known = known.or_default();
                let before = known.len();
                for (policy, by) in &bans {
                    known.entry(policy).or_insert(by);
                }
                if is_new || known.len() > before {
                    pending.push(next);
                }
            }
        }
        self.problems.extend(found.into_values());
    }
}

fn refusals(caller: &str, callee: &Module, bans: &BTreeMap<&str, &str>) -> Vec<ErrorBody> {
    let name = callee.name();
    let mut found = Vec::new();
    if !callee.manifest.invocation.agent_invocable {
        let message = format!("module `{name}` may not be called by other modules");
        let error =
            ErrorBody::new(Code::E4007, message).suggest("set invocation.agent_invocable in its module.yaml");
        found.push(error.detail("module", name).detail("called_by", caller));
    }
    for (policy, by) in bans {
        if callee.manifest.policies.0.get(*policy) == Some(&Access::Allow) {
            let message = format!("module `{name}` requires `{policy}`, which `{by}` denies");
            let error = ErrorBody::new(Code::E4007, message)
                .suggest("allow it in the policies of the calling module, or call another module")
                .detail("policy", *policy);
            found.push(error.detail("module", name).detail("denied_by", *by));
        }
    }
    found
}

/// Each reachable cycle once, starting at the module where it was first entered.
fn cycles(root: &str, edges: &BTreeMap<String, BTreeSet<String>>) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut done: BTreeSet<&str> = BTreeSet::new();
    // An explicit stack, not recursion: a chain may contain all modules.
    let mut stack: Vec<(&str, Vec<&str>)> = Vec::new();
    let next = |name: &str| -> Vec<&str> {
        let next = edges.get(name).into_iter().flatten();
        next.map(String::as_str).rev().collect()
    };
    stack.push((root, next(root)));
    while let Some((name, rest)) = stack.last_mut() {
        let Some(step) = rest.pop() else {
            done.insert(name);
            stack.pop();
            continue;
        };
        if let Some(at) = stack.iter().position(|(name, _)| *name == step) {
            let mut cycle: Vec<String> = stack
                .iter()
                .skip(at)
                .map(|(name, _)| String::from(*name))
                .collect();
            cycle.push(String::from(step));
            found.push(cycle);
        } else if !done.contains(step) {
            stack.push((step, next(step)));
        }
    }
    found
}

/// Number of calls in the longest chain from `name`. The graph must be acyclic.
fn depth<'a>(
    name: &'a str,
    edges: &'a BTreeMap<String, BTreeSet<String>>,
    known: &mut BTreeMap<&'a str, usize>,
) -> usize {
    if let Some(depth) = known.get(name) {
        return *depth;
    }
    let mut deepest = 0;
    for next in edges.get(name).into_iter().flatten() {
        deepest = deepest.max(1 + depth(next, edges, known));
    }
    known.insert(name, deepest);
    deepest
}
