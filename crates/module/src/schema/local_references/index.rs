//! The schemas of a document with the URIs and anchors that name them, and the targets of its references.
//! Built without recursion. A target that no keyword leads to is added when a reference is found to it.

use std::collections::{HashMap, HashSet};

use jsonschema::{Draft, uri};
use serde_json::{Map, Value};

use crate::document::{join, tokens};
use crate::limits;
use crate::schema::admission::Refusal;
use crate::schema::walk::{MANY, NAMED, ONE};
use crate::steps::count_steps;

/// How often references are resolved: a target can name the target of another reference.
const ROUNDS_MAX: usize = 3;

#[derive(Debug)]
pub(super) struct Index {
    draft: Draft,
    /// Every schema.
    pub(super) places: Vec<SchemaPlace>,
    known: HashSet<String>,
    pub(super) references: Vec<Reference>,
    /// Base URIs, without fragment. The first is that of the root.
    bases: Vec<String>,
    resources: HashMap<String, String>,
    /// The base URIs of schemas with their own `$id`, by pointer.
    named: HashMap<String, usize>,
    anchors: HashMap<(usize, String), Anchor>,
    /// How many dynamic anchors have this name.
    dynamic: HashMap<String, usize>,
    references_seen: usize,
}

#[derive(Debug)]
pub(super) struct SchemaPlace {
    pub(super) pointer: String,
    /// The absolute URI of a schema with its own `$id`.
    pub(super) id: Option<String>,
}

#[derive(Debug)]
pub(super) struct Reference {
    pub(super) pointer: String,
    pub(super) keyword: &'static str,
    /// Absolute, without fragment.
    uri: String,
    fragment: String,
    pub(super) target: Option<ReferenceTarget>,
}

#[derive(Clone, Debug)]
pub(super) enum ReferenceTarget {
    Pointer(String),
    /// The target is one of several anchors with this name, by the schemas that were entered before.
    Choice {
        uri: String,
        name: String,
        pointer: String,
    },
}

#[derive(Clone, Debug)]
struct Anchor {
    pointer: String,
    is_dynamic: bool,
}

impl Index {
    /// `None` if the `$id` of the root is no URI.
    pub(super) fn of(document: &Value, draft: Draft) -> Option<Self> {
        let root = uri::from_str("").ok()?;
        let mut index = Self {
            draft,
            places: Vec::new(),
            known: HashSet::new(),
            references: Vec::new(),
            bases: vec![String::from(without_fragment(root.as_str()))],
            resources: HashMap::new(),
            named: HashMap::new(),
            anchors: HashMap::new(),
            dynamic: HashMap::new(),
            references_seen: 0,
        };
        index.resources.insert(index.bases[0].clone(), String::new());
        index.add(document, "", 0);
        Some(index)
    }

    /// The URI of the root.
    pub(super) fn root(&self) -> String {
        let own = self.places.first().and_then(|root| root.id.clone());
        own.unwrap_or_else(|| self.bases[0].clone())
    }

    /// Whether a part of the document has its own URI.
    pub(super) fn has_parts(&self) -> bool {
        self.named.keys().any(|pointer| !pointer.is_empty())
    }

    /// Whether the target of a reference depends on the schemas that were entered before.
    pub(super) fn has_choice(&self) -> bool {
        let several = |name: &String| self.dynamic.get(name).is_some_and(|count| *count > 1);
        self.references
            .iter()
            .any(|reference| matches!(&reference.target, Some(ReferenceTarget::Choice { name, .. }) if several(name)))
    }

    /// Finds the targets.
    pub(super) fn resolve(&mut self, document: &Value) -> Result<(), Refusal> {
        for _ in 0..ROUNDS_MAX {
            let (found, mut next) = (self.places.len(), 0);
            while next < self.references.len() {
                count_steps(1);
                if self.references_seen > limits::SCHEMA_REFERENCES_MAX {
                    return Err(Refusal::References);
                }
                if self.references[next].target.is_none() {
                    let target = self.target(document, &self.references[next]);
                    if let Some((ReferenceTarget::Pointer(pointer), base)) = &target
                        && let Some(value) = document.pointer(pointer)
                    {
                        self.add(value, pointer, *base);
                    }
                    self.references[next].target = target.map(|(target, _)| target);
                }
                next += 1;
            }
            if self.places.len() == found {
                break;
            }
        }
        Ok(())
    }

    /// Adds the schema at a pointer and all schemas that its keywords lead to.
    fn add(&mut self, value: &Value, pointer: &str, base: usize) {
        let mut open = vec![(value, String::from(pointer), base)];
        while let Some((value, pointer, base)) = open.pop() {
            let Value::Object(map) = value else { continue };
            count_steps(1 + map.len());
            if !self.known.insert(pointer.clone()) {
                continue;
            }
            let (base, id) = self.name(map, &pointer, base);
            self.refer(map, &pointer, base);
            children(map, &pointer, |pointer, value| open.push((value, pointer, base)));
            self.places.push(SchemaPlace { pointer, id });
        }
    }

    /// Registers the names of a schema; returns its base URI and its own URI.
    fn name(&mut self, map: &Map<String, Value>, pointer: &str, base: usize) -> (usize, Option<String>) {
        let older = !matches!(self.draft, Draft::Draft201909 | Draft::Draft202012);
        if older && map.contains_key("$ref") {
            // Such a schema has no other keywords.
            return (base, None);
        }
        let text = |key: &str| map.get(key).and_then(Value::as_str);
        let id = match self.draft {
            Draft::Draft4 => text("id"),
            _ => text("$id"),
        };
        let (mut base, mut own) = (base, None);
        match id.map(|id| (id, id.strip_prefix('#'))) {
            Some((_, Some(name))) if older => self.anchor(base, name, pointer, false),
            Some((_, Some(_))) | None => {}
            Some((id, None)) => {
                if let Some(absolute) = absolute(&self.bases[base], id) {
                    let absolute = String::from(without_fragment(&absolute));
                    self.resources
                        .entry(absolute.clone())
                        .or_insert_with(|| String::from(pointer));
                    self.bases.push(absolute.clone());
                    base = self.bases.len() - 1;
                    self.named.insert(String::from(pointer), base);
                    own = Some(absolute);
                }
            }
        }
        if !older && let Some(name) = text("$anchor") {
            self.anchor(base, name, pointer, false);
        }
        if self.draft == Draft::Draft202012
            && let Some(name) = text("$dynamicAnchor")
        {
            self.anchor(base, name, pointer, true);
            *self.dynamic.entry(String::from(name)).or_default() += 1;
        }
        (base, own)
    }

    fn anchor(&mut self, base: usize, name: &str, pointer: &str, is_dynamic: bool) {
        let anchor = Anchor {
            pointer: String::from(pointer),
            is_dynamic,
        };
        self.anchors.entry((base, String::from(name))).or_insert(anchor);
    }

    /// Registers the references of a schema.
    fn refer(&mut self, map: &Map<String, Value>, pointer: &str, base: usize) {
        for keyword in ["$ref", "$dynamicRef"] {
            let Some(text) = map.get(keyword).and_then(Value::as_str) else {
                continue;
            };
            if keyword == "$dynamicRef" && self.draft != Draft::Draft202012 {
                continue;
            }
            self.references_seen += 1;
            let (uri, fragment) = text.split_once('#').unwrap_or((text, ""));
            let uri = match uri {
                "" => Some(self.bases[base].clone()),
                uri => absolute(&self.bases[base], uri).map(|uri| String::from(without_fragment(&uri))),
            };
            if let Some(uri) = uri {
                self.references.push(Reference {
                    pointer: String::from(pointer),
                    keyword,
                    uri,
                    fragment: crate::load::percent_decoded(fragment),
                    target: None,
                });
            }
        }
    }

    /// The target of a reference, and the base URI of a schema there.
    fn target(&self, document: &Value, reference: &Reference) -> Option<(ReferenceTarget, usize)> {
        let Reference {
            keyword,
            uri,
            fragment,
            ..
        } = reference;
        let root = self.resources.get(uri)?;
        let resource = self.named.get(root).copied().unwrap_or(0);
        if !fragment.is_empty() && !fragment.starts_with('/') {
            let anchor = self.anchors.get(&(resource, fragment.clone()))?;
            let pointer = anchor.pointer.clone();
            let target = match anchor.is_dynamic && *keyword == "$dynamicRef" {
                true => ReferenceTarget::Choice {
                    uri: uri.clone(),
                    name: fragment.clone(),
                    pointer,
                },
                false => ReferenceTarget::Pointer(pointer),
            };
            return Some((target, resource));
        }
        let pointer = format!("{root}{fragment}");
        document.pointer(&pointer)?;
        // A part with its own `$id` on the way changes the base URI.
        let (mut base, mut above) = (resource, root.clone());
        for token in tokens(fragment) {
            count_steps(token.len() + above.len());
            above = join(&above, &token);
            if let Some(inner) = self.named.get(&above) {
                base = *inner;
            }
        }
        Some((ReferenceTarget::Pointer(pointer), base))
    }
}

/// The schemas in the keywords of a schema, with their pointers.
fn children<'a>(map: &'a Map<String, Value>, pointer: &str, mut found: impl FnMut(String, &'a Value)) {
    for (key, value) in map {
        match value {
            Value::Object(inner) if NAMED.contains(&key.as_str()) => {
                let below = join(pointer, key);
                for (name, schema) in inner {
                    found(join(&below, name), schema);
                }
            }
            Value::Object(_) if ONE.contains(&key.as_str()) => found(join(pointer, key), value),
            Value::Array(items) if MANY.contains(&key.as_str()) => {
                let below = join(pointer, key);
                for (index, schema) in items.iter().enumerate() {
                    found(join(&below, &index.to_string()), schema);
                }
            }
            _ => {}
        }
    }
}

fn absolute(base: &str, reference: &str) -> Option<String> {
    let base = uri::from_str(base).ok()?;
    let resolved = uri::resolve_against(&base.borrow(), reference).ok()?;
    Some(String::from(resolved.as_str()))
}

fn without_fragment(uri: &str) -> &str {
    uri.split_once('#').map_or(uri, |(uri, _)| uri)
}
