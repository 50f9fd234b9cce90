//! The composition graph as data; the output of `--format json`.

use module::compose::{Dependency, Graph, Resolved};
use module::manifest::Composition;
use serde::Serialize;

#[derive(Debug, Serialize)]
pub(crate) struct CompositionGraph {
    pub(crate) root: String,
    /// Length of the longest chain of calls; null if there is a cycle.
    pub(crate) depth: Option<usize>,
    pub(crate) max_depth: u64,
    pub(crate) modules: Vec<Node>,
    pub(crate) cycles: Vec<Vec<String>>,
    pub(crate) errors: Vec<GraphProblem>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) pattern: &'static str,
    pub(crate) links: Vec<Edge>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Edge {
    pub(crate) name: String,
    /// The required version range.
    pub(crate) wanted: Option<String>,
    pub(crate) called: bool,
    pub(crate) optional: bool,
    pub(crate) fallback: Option<String>,
    pub(crate) conditions: Vec<String>,
    /// The module that is called under this name; null if there is none.
    pub(crate) taken: Option<String>,
    pub(crate) version: Option<String>,
    /// Why it is not the module with this name.
    pub(crate) absent: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct GraphProblem {
    pub(crate) code: String,
    pub(crate) message: String,
}

impl CompositionGraph {
    pub(crate) fn of(graph: &Graph) -> Self {
        let root = graph.nodes.get(&graph.root);
        let modules = graph.nodes.iter().map(|(name, node)| {
            let manifest = &node.module.manifest;
            let links = node.links.iter();
            Node {
                name: name.clone(),
                version: manifest.version.clone(),
                pattern: manifest.composition.pattern.as_str(),
                links: links
                    .map(|(link, choice)| Edge::of(link, choice.as_ref(), &manifest.composition))
                    .collect(),
            }
        });
        let problems = graph.errors().into_iter().map(|error| GraphProblem {
            code: error.code,
            message: error.message,
        });
        Self {
            root: graph.root.clone(),
            depth: graph.depth,
            max_depth: root.map_or(0, |node| node.module.manifest.composition.max_depth),
            modules: modules.collect(),
            cycles: graph.cycles.clone(),
            errors: problems.collect(),
        }
    }

    pub(crate) fn node(&self, name: &str) -> Option<&Node> {
        self.modules.iter().find(|knot| knot.name == name)
    }
}

impl Edge {
    fn of(
        link: &Dependency,
        choice: Result<&Resolved, &module::compose::ResolveError>,
        composition: &Composition,
    ) -> Self {
        let requirement = &link.requirement;
        let name = requirement.name.as_str();
        let into = composition
            .dataflow
            .iter()
            .filter(|flow| flow.to.iter().any(|to| to == name));
        let flowing = into.filter_map(|flow| flow.condition.clone());
        let routes = composition.routing.iter();
        let routed = routes
            .filter(|route| route.next.as_deref() == Some(name))
            .map(|route| route.condition.clone());
        let taken = choice.ok().map(|choice| &choice.module);
        Self {
            name: String::from(name),
            wanted: requirement.version.clone(),
            called: link.called,
            optional: requirement.optional,
            fallback: requirement.fallback.clone(),
            conditions: flowing.chain(routed).collect(),
            taken: taken.map(|module| String::from(module.name())),
            version: taken.map(|module| module.manifest.version.clone()),
            absent: match choice {
                Ok(choice) => choice.fallback_reason.as_ref().map(ToString::to_string),
                Err(absence) => Some(absence.to_string()),
            },
        }
    }

    /// Notes for one line of output.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.called {
            notes.push(String::from("called"));
        }
        if self.optional {
            notes.push(String::from("optional"));
        }
        notes.extend(self.fallback.iter().map(|fallback| format!("else {fallback}")));
        notes.extend(self.conditions.iter().map(|condition| format!("if {condition}")));
        notes
    }
}
