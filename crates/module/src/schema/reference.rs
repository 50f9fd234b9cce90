//! Invalid references in a schema document: remote, broken, or cyclic without descending into the value (a
//! validator would not terminate on those).

use std::collections::{BTreeMap, BTreeSet};

use jsonschema::Draft;
use serde_json::{Map, Value};

use super::contract::draft;
use super::walk::{Visit, walk};
use crate::document::{join, tokens};
use crate::limits;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferenceProblem {
    pub kind: ReferenceProblemKind,
    /// Pointer to the `$ref` keyword.
    pub pointer: String,
    pub reference: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferenceProblemKind {
    Remote,
    Broken,
    Loop,
}

const REFERENCES: &[&str] = &["$ref", "$dynamicRef", "$recursiveRef"];

/// Keywords whose schemas apply to the same value.
const IN_PLACE: &[&str] = &["allOf", "anyOf", "oneOf", "not", "if", "then", "else"];

/// All invalid references reachable from the schemas at `roots`.
pub fn reference_problems(document: &Value, roots: &[&str]) -> Vec<ReferenceProblem> {
    let mut graph = Graph {
        anchors: anchors(document),
        ..Graph::default()
    };
    let mut pending: Vec<String> = roots.iter().map(|root| String::from(*root)).collect();
    let mut walked: BTreeSet<String> = BTreeSet::new();
    while let Some(root) = pending.pop() {
        if !walked.insert(root.clone()) {
            continue;
        }
        if let Some(schema) = document.pointer(&root) {
            graph.collect(document, schema, &root, &mut pending);
        }
    }
    graph.loops();
    graph.problems.sort_by(|a, b| a.pointer.cmp(&b.pointer));
    graph.problems.dedup();
    graph.problems
}

/// Follows the `$ref`s of a schema; stops at a loop or a broken reference.
pub fn resolve<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    let mut schema = schema;
    for _ in 0..limits::REFERENCE_HOPS_MAX {
        let target = schema
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(local_pointer)
            .and_then(|pointer| document.pointer(&pointer));
        match target {
            Some(target) => schema = target,
            None => return schema,
        }
    }
    schema
}

/// `#/a%20b` as a pointer; `None` for references that are not local pointers.
pub(super) fn local_pointer(reference: &str) -> Option<String> {
    let fragment = reference.strip_prefix('#')?;
    (fragment.is_empty() || fragment.starts_with('/')).then(|| crate::load::percent_decoded(fragment))
}

#[derive(Default)]
struct Graph {
    anchors: BTreeSet<String>,
    problems: Vec<ReferenceProblem>,
    /// Schema to the schemas that apply to the same value, each with its reference if there is one.
    edges: BTreeMap<String, Vec<Edge>>,
}

struct Edge {
    to: String,
    reference: Option<String>,
}

impl Graph {
    fn collect(&mut self, document: &Value, root: &Value, pointer: &str, pending: &mut Vec<String>) {
        walk(root, pointer, &mut |here, schema| {
            self.visit(document, here, schema, pending);
            Visit::Descend
        });
    }

    fn visit(
        &mut self,
        document: &Value,
        here: &str,
        schema: &Map<String, Value>,
        pending: &mut Vec<String>,
    ) {
        for keyword in REFERENCES {
            let Some(reference) = schema.get(*keyword).and_then(Value::as_str) else {
                continue;
            };
            let problem = |kind| ReferenceProblem {
                kind,
                pointer: join(here, keyword),
                reference: String::from(reference),
            };
            let Some(fragment) = reference.strip_prefix('#') else {
                self.problems.push(problem(ReferenceProblemKind::Remote));
                continue;
            };
            match local_pointer(reference) {
                Some(target) if document.pointer(&target).is_some_and(is_schema) => {
                    self.edges.entry(String::from(here)).or_default().push(Edge {
                        to: target.clone(),
                        reference: Some(String::from(reference)),
                    });
                    // The whole document is not a schema; every other target is visited once.
                    if tokens(&target).next().is_some() {
                        pending.push(target);
                    }
                }
                None if self.anchors.contains(fragment) || *keyword != "$ref" => {}
                _ => self.problems.push(problem(ReferenceProblemKind::Broken)),
            }
        }
        for keyword in IN_PLACE {
            let below = join(here, keyword);
            let targets: Vec<String> = match schema.get(*keyword) {
                Some(Value::Array(items)) => (0..items.len())
                    .map(|index| join(&below, &index.to_string()))
                    .collect(),
                Some(Value::Object(_)) => vec![below],
                _ => continue,
            };
            let edges = self.edges.entry(String::from(here)).or_default();
            edges.extend(targets.into_iter().map(|to| Edge { to, reference: None }));
        }
    }

    /// Iterative depth-first search over the edges; an edge into the open path closes a loop.
    fn loops(&mut self) {
        let mut done: BTreeSet<&str> = BTreeSet::new();
        for start in self.edges.keys() {
            let mut path: Vec<(&str, usize)> = vec![(start, 0)];
            let mut open: BTreeSet<&str> = BTreeSet::from([start.as_str()]);
            while let Some((node, next)) = path.last_mut() {
                let edge = if done.contains(node) {
                    None
                } else {
                    self.edges.get(*node).and_then(|edges| edges.get(*next))
                };
                *next += 1;
                let here = *node;
                match edge {
                    Some(edge) if open.contains(edge.to.as_str()) => {
                        let reference = edge.reference.clone().unwrap_or_else(|| format!("#{}", edge.to));
                        self.problems.push(ReferenceProblem {
                            kind: ReferenceProblemKind::Loop,
                            pointer: join(here, "$ref"),
                            reference,
                        });
                    }
                    Some(edge) => {
                        open.insert(&edge.to);
                        path.push((&edge.to, 0));
                    }
                    None => {
                        open.remove(here);
                        done.insert(here);
                        path.pop();
                    }
                }
            }
        }
    }
}

fn is_schema(value: &Value) -> bool {
    value.is_object() || value.is_boolean()
}

/// Names declared by `$id: "#name"` or `$anchor: name`. The document as a whole is not a schema, so a
/// validator finds them only in the definitions, under the keyword of its draft.
fn anchors(document: &Value) -> BTreeSet<String> {
    let group = match document.as_object().map_or(Draft::Draft7, draft) {
        Draft::Draft201909 | Draft::Draft202012 => "$defs",
        _ => "definitions",
    };
    let definitions = document.get(group).and_then(Value::as_object);
    let mut anchors = BTreeSet::new();
    let mut collect = |_: &str, schema: &Map<String, Value>| {
        let text = |key: &str| schema.get(key).and_then(Value::as_str);
        let id = text("$id").and_then(|id| id.strip_prefix('#'));
        for name in [id, text("$anchor"), text("$dynamicAnchor")]
            .into_iter()
            .flatten()
        {
            anchors.insert(String::from(name));
        }
        Visit::Descend
    };
    for definition in definitions.into_iter().flat_map(Map::values) {
        walk(definition, "", &mut collect);
    }
    anchors
}
