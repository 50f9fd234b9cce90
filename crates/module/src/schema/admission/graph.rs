//! The schemas of a document as a graph: which schemas apply to the same value, to its members or to its
//! items. Built without recursion; limits are enforced while it grows.

use std::collections::HashMap;

use jsonschema::Draft;
use serde_json::{Map, Value};

use super::Refusal;
use super::pattern::{backtracks, written_out};
use crate::limits;
use crate::schema::reference::local_pointer;
use crate::steps::count_steps;

#[derive(Debug, Default)]
pub(super) struct SchemaNode {
    /// How much work one evaluation is, without other schemas.
    pub(super) weight: u64,
    /// Schemas that apply to the same value.
    pub(super) same: Vec<usize>,
    /// Of these at most one applies to a member.
    pub(super) members: Vec<usize>,
    /// All of these can apply to one member.
    pub(super) every_member: Vec<usize>,
    pub(super) names: Vec<usize>,
    /// Of these at most one applies to an item.
    pub(super) items: Vec<usize>,
    /// All of these can apply to one item.
    pub(super) every_item: Vec<usize>,
    /// `unevaluatedProperties` and `unevaluatedItems` evaluate the schemas of the same value again.
    pub(super) repeats: bool,
    /// Below a part with its own `$id` or `$schema`, which changes what a reference means.
    embedded: bool,
}

#[derive(Debug, Default)]
pub(super) struct SchemaGraph<'a> {
    pub(super) nodes: Vec<SchemaNode>,
    /// Of the nodes that are schemas of the document.
    schemas: Vec<Option<&'a Map<String, Value>>>,
    comparison: Option<usize>,
    /// Nodes by the address of their schema; the document is not changed meanwhile.
    known: HashMap<*const Map<String, Value>, usize>,
    anchors: HashMap<&'a str, Vec<usize>>,
    /// References to anchors, which are resolved last.
    named: Vec<(usize, &'a str)>,
    references: usize,
    definitions: usize,
    patterns: usize,
    /// Patterns whose matching can take quadratic time.
    pub(super) backtracking: u64,
    draft4: bool,
    /// The URI of the root, if references are this and a pointer; else parts with their own URI are refused.
    root: Option<&'a str>,
    /// A reference has no target in the document.
    pub(super) unresolved: Option<&'a str>,
}

impl<'a> SchemaGraph<'a> {
    /// The root is the first node.
    pub(super) fn of(document: &'a Value, draft: Draft, root: Option<&'a str>) -> Result<Self, Refusal> {
        check_size(document)?;
        let mut graph = Self {
            draft4: draft == Draft::Draft4,
            root,
            ..Self::default()
        };
        graph.add(document, false);
        let mut next = 0;
        while let Some(schema) = graph.schemas.get(next).copied() {
            if let Some(schema) = schema {
                graph.visit(document, next, schema)?;
            }
            next += 1;
        }
        for (from, name) in std::mem::take(&mut graph.named) {
            match graph.anchors.get(name) {
                Some(targets) => graph.nodes[from].same.extend(targets),
                None => graph.unresolved = Some(name),
            }
        }
        Ok(graph)
    }

    /// The node of a schema; `None` for `true` and `false`, which cost nothing.
    fn add(&mut self, schema: &'a Value, embedded: bool) -> Option<usize> {
        let Value::Object(map) = schema else { return None };
        let key = std::ptr::from_ref(map);
        if let Some(id) = self.known.get(&key) {
            return Some(*id);
        }
        let id = self.nodes.len();
        self.known.insert(key, id);
        self.schemas.push(Some(map));
        self.nodes.push(SchemaNode {
            weight: 1,
            embedded: embedded || (id > 0 && self.is_embedded(map)),
            ..SchemaNode::default()
        });
        Some(id)
    }

    /// A node that visits every value below the one it is applied to.
    fn comparison(&mut self) -> usize {
        *self.comparison.get_or_insert_with(|| {
            let id = self.nodes.len();
            self.schemas.push(None);
            self.nodes.push(SchemaNode {
                weight: 4,
                every_member: vec![id],
                every_item: vec![id],
                ..SchemaNode::default()
            });
            id
        })
    }

    fn is_embedded(&self, map: &Map<String, Value>) -> bool {
        let names_resource = |key| is_text(map.get(key), |id| !id.starts_with('#'));
        let named =
            names_resource("$id") || names_resource("$schema") || (self.draft4 && names_resource("id"));
        named && self.root.is_none()
    }

    fn visit(
        &mut self,
        document: &'a Value,
        id: usize,
        schema: &'a Map<String, Value>,
    ) -> Result<(), Refusal> {
        let mut node = std::mem::take(&mut self.nodes[id]);
        let embedded = node.embedded;
        for (key, value) in schema {
            count_steps(1 + children(value).count());
            match key.as_str() {
                "patternProperties" => {
                    for (pattern, value) in value.as_object().into_iter().flatten() {
                        self.pattern(pattern)?;
                        node.weight += 1;
                        node.every_member.extend(self.add(value, embedded));
                    }
                }
                "$defs" | "definitions" => {
                    for definition in children(value) {
                        self.add(definition, embedded);
                        self.definitions += 1;
                    }
                }
                "enum" | "required" => node.weight += children(value).count() as u64 / 8,
                "format" => node.weight += 2,
                "pattern" => {
                    node.weight += 4;
                    self.pattern(value.as_str().unwrap_or_default())?;
                }
                "$ref" | "$dynamicRef" | "$recursiveRef" => {
                    if let Some(reference) = value.as_str() {
                        node.same
                            .extend(self.reference(document, id, embedded, reference)?);
                    }
                }
                "$id" | "$anchor" | "$dynamicAnchor" => {
                    if let Some(text) = value.as_str() {
                        let name = text.strip_prefix('#').unwrap_or(text);
                        self.anchors.entry(name).or_default().push(id);
                    }
                }
                key => self.add_schemas(&mut node, key, value),
            }
        }
        if self.definitions > limits::SCHEMA_DEFINITIONS_MAX {
            return Err(Refusal::Definitions);
        }
        self.nodes[id] = node;
        Ok(())
    }

    /// The schemas in a keyword that applies them.
    fn add_schemas(&mut self, node: &mut SchemaNode, key: &str, value: &'a Value) {
        let embedded = node.embedded;
        match key {
            "allOf" | "anyOf" | "oneOf" | "dependencies" | "dependentSchemas" => {
                node.same
                    .extend(children(value).filter_map(|it| self.add(it, embedded)));
            }
            "not" | "if" | "then" | "else" => node.same.extend(self.add(value, embedded)),
            "properties" => {
                let before = node.members.len();
                node.members
                    .extend(children(value).filter_map(|it| self.add(it, embedded)));
                node.weight += (node.members.len() - before) as u64 / 4;
            }
            "additionalProperties" => node.members.extend(self.add(value, embedded)),
            "unevaluatedProperties" => {
                node.repeats = true;
                node.every_member.extend(self.add(value, embedded));
            }
            "propertyNames" => node.names.extend(self.add(value, embedded)),
            "items" if value.is_object() => node.items.extend(self.add(value, embedded)),
            "items" | "prefixItems" => {
                node.items
                    .extend(children(value).filter_map(|it| self.add(it, embedded)));
            }
            "additionalItems" => node.items.extend(self.add(value, embedded)),
            "contains" => node.every_item.extend(self.add(value, embedded)),
            "unevaluatedItems" => {
                node.repeats = true;
                node.every_item.extend(self.add(value, embedded));
            }
            "uniqueItems" => {
                let comparison = self.comparison();
                node.every_item.push(comparison);
            }
            "contentSchema" => drop(self.add(value, embedded)),
            _ => {}
        }
    }

    /// The target of a reference, if it is a pointer that resolves.
    fn reference(
        &mut self,
        document: &'a Value,
        from: usize,
        embedded: bool,
        reference: &'a str,
    ) -> Result<Option<usize>, Refusal> {
        self.references += 1;
        if self.references > limits::SCHEMA_REFERENCES_MAX {
            return Err(Refusal::References);
        }
        if embedded {
            return Err(Refusal::EmbeddedId);
        }
        let local = match self.root {
            Some(root) => reference.strip_prefix(root),
            None => Some(reference),
        };
        let Some(pointer) = local.and_then(local_pointer) else {
            // Any anchor with this name can be the target of a dynamic reference.
            let name = match self.root {
                Some(_) => reference.split_once('#').map(|(_, name)| name),
                None => reference.strip_prefix('#'),
            };
            match name {
                Some(name) => self.named.push((from, name)),
                None => self.unresolved = Some(reference),
            }
            return Ok(None);
        };
        let mut target = document;
        for token in crate::document::tokens(&pointer) {
            count_steps(token.len());
            if let (Value::Object(map), false) = (target, std::ptr::eq(target, document))
                && self.is_embedded(map)
            {
                return Err(Refusal::EmbeddedId);
            }
            let found = match target {
                Value::Object(map) => map.get(&token),
                Value::Array(items) => token.parse::<usize>().ok().and_then(|index| items.get(index)),
                _ => None,
            };
            match found {
                Some(found) => target = found,
                None => {
                    self.unresolved = Some(reference);
                    return Ok(None);
                }
            }
        }
        let before = self.nodes.len();
        let target = self.add(target, false);
        // A target outside of `$defs` and `definitions`.
        self.definitions += self.nodes.len() - before;
        Ok(target)
    }

    fn pattern(&mut self, pattern: &str) -> Result<(), Refusal> {
        self.patterns += 1;
        if self.patterns > limits::SCHEMA_PATTERNS_MAX {
            return Err(Refusal::Patterns);
        }
        if written_out(pattern) > limits::SCHEMA_REPETITION_MAX {
            return Err(Refusal::Repetition);
        }
        self.backtracking += u64::from(backtracks(pattern));
        Ok(())
    }
}

/// The values of an object or a list.
fn children(value: &Value) -> impl Iterator<Item = &Value> {
    let members = value.as_object().into_iter().flat_map(Map::values);
    members.chain(value.as_array().into_iter().flatten())
}

fn is_text(value: Option<&Value>, check: impl FnOnce(&str) -> bool) -> bool {
    value.and_then(Value::as_str).is_some_and(check)
}

/// The JSON values of a schema and the bytes of its texts. A validator keeps the pointer of every schema, so
/// these count with their whole length.
pub(super) fn check_size(document: &Value) -> Result<(), Refusal> {
    let mut open = vec![(document, 0)];
    let (mut nodes, mut bytes) = (0, 0);
    while let Some((value, pointer)) = open.pop() {
        count_steps(1);
        nodes += 1;
        bytes += pointer;
        match value {
            Value::Object(map) => {
                open.extend(map.iter().map(|(key, value)| (value, pointer + key.len() + 1)));
            }
            Value::Array(list) => open.extend(list.iter().map(|value| (value, pointer + 1))),
            Value::String(text) => bytes += text.len(),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
        if nodes > limits::SCHEMA_NODES_MAX {
            return Err(Refusal::Nodes);
        }
        if bytes > limits::SCHEMA_BYTES_MAX {
            return Err(Refusal::Bytes);
        }
    }
    Ok(())
}
