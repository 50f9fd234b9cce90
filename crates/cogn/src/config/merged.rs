//! All layers as one tree. Tables merge key by key; `[[backends]]` and `[[credentials]]` merge by name, so
//! that a later layer can change one weight without repeating the rest; every other list is replaced.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::layer::{Layer, Origin, escape};

/// Lists whose items have names.
const NAMED: [&str; 2] = ["/backends", "/credentials"];

#[derive(Clone, Debug, Default)]
pub(crate) struct Merged {
    pub(crate) tree: Map<String, Value>,
    origins: BTreeMap<String, Origin>,
    /// Why settings of the project's file are ignored, if the file was trusted with another content.
    pub(crate) outdated_trust: Option<String>,
}

/// One value of the tree.
#[derive(Debug)]
pub(crate) struct Leaf<'m> {
    pub(crate) key: String,
    pub(crate) value: &'m Value,
    pub(crate) origin: Option<&'m Origin>,
}

impl Merged {
    /// Merges layers in order of increasing priority.
    pub(crate) fn of(layers: impl IntoIterator<Item = Layer>) -> Self {
        let mut merged = Self::default();
        for layer in layers {
            let mut tree = std::mem::take(&mut merged.tree);
            merged.table(&mut tree, layer.tree, "", "", &layer.origins);
            merged.tree = tree;
        }
        merged
    }

    /// The origin of the value at a pointer: its own, or that of the nearest parent with an origin.
    pub(crate) fn origin(&self, pointer: &str) -> Option<&Origin> {
        let mut pointer = pointer;
        loop {
            if let Some(origin) = self.origins.get(pointer) {
                return Some(origin);
            }
            pointer = pointer.rsplit_once('/')?.0;
        }
    }

    /// The value at a pointer, or null.
    pub(crate) fn at(&self, pointer: &str) -> Value {
        let mut steps = pointer.trim_start_matches('/').splitn(2, '/');
        let first = steps.next().and_then(|step| self.tree.get(step));
        let rest = steps.next().map(|rest| format!("/{rest}")).unwrap_or_default();
        first
            .and_then(|value| value.pointer(&rest))
            .cloned()
            .unwrap_or_default()
    }

    /// All leaf values with dotted name and origin, in the order of the tree.
    pub(crate) fn leaves(&self) -> impl Iterator<Item = Leaf<'_>> {
        let mut leaves = Vec::new();
        for (key, value) in &self.tree {
            self.gather(&format!("/{}", escape(key)), value, &mut leaves);
        }
        leaves.into_iter()
    }

    fn gather<'m>(&'m self, pointer: &str, value: &'m Value, leaves: &mut Vec<Leaf<'m>>) {
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    self.gather(&format!("{pointer}/{}", escape(key)), value, leaves);
                }
            }
            Value::Array(items) if NAMED.contains(&pointer) => {
                for (index, item) in items.iter().enumerate() {
                    self.gather(&format!("{pointer}/{index}"), item, leaves);
                }
            }
            value => {
                let key = self.dotted(pointer);
                leaves.push(Leaf {
                    key,
                    value,
                    origin: self.origin(pointer),
                });
            }
        }
    }

    /// `/backends/0/weight` as `backends.fast.weight`.
    pub(crate) fn dotted(&self, pointer: &str) -> String {
        let mut value: Option<&Value> = None;
        let mut parts: Vec<String> = Vec::new();
        for step in pointer.split('/').skip(1) {
            let step = step.replace("~1", "/").replace("~0", "~");
            value = match value {
                None => self.tree.get(&step),
                Some(Value::Array(items)) => step.parse::<usize>().ok().and_then(|at| items.get(at)),
                Some(inside) => inside.get(&step),
            };
            let name = value.and_then(|value| value.get("name")).and_then(Value::as_str);
            parts.push(match name {
                Some(name) if step.parse::<usize>().is_ok() => String::from(name),
                _ => step,
            });
        }
        parts.join(".")
    }

    fn table(
        &mut self,
        target: &mut Map<String, Value>,
        source: Map<String, Value>,
        to: &str,
        from: &str,
        origins: &BTreeMap<String, Origin>,
    ) {
        for (key, value) in source {
            let step = escape(&key);
            let (to, from) = (format!("{to}/{step}"), format!("{from}/{step}"));
            match (target.get_mut(&key), value) {
                (Some(Value::Object(inner)), Value::Object(value)) => {
                    self.table(inner, value, &to, &from, origins);
                }
                (Some(Value::Array(inner)), Value::Array(value)) if NAMED.contains(&to.as_str()) => {
                    self.named(inner, value, &to, &from, origins);
                }
                // `COGN_BACKENDS__FAST__WEIGHT` names an item where a file has a list.
                (Some(Value::Array(inner)), Value::Object(value)) if NAMED.contains(&to.as_str()) => {
                    for (name, item) in value {
                        let at = inner.iter().position(|known| is_called(known, &name));
                        let (to, from) = (at.map(|at| format!("{to}/{at}")), format!("{from}/{name}"));
                        match (at.and_then(|at| inner.get_mut(at)).zip(to), item) {
                            (Some((Value::Object(old), to)), Value::Object(new)) => {
                                self.table(old, new, &to, &from, origins);
                            }
                            // No item has this name: the schema check reports it.
                            (_, item) => inner.push(json!({ (name): item })),
                        }
                    }
                }
                (_, value) => {
                    self.take_origins(&to, &from, origins);
                    target.insert(key, value);
                }
            }
        }
    }

    fn named(
        &mut self,
        target: &mut Vec<Value>,
        source: Vec<Value>,
        to: &str,
        from: &str,
        origins: &BTreeMap<String, Origin>,
    ) {
        for (index, item) in source.into_iter().enumerate() {
            let known = item
                .get("name")
                .and_then(|name| target.iter().position(|old| old.get("name") == Some(name)));
            let from = format!("{from}/{index}");
            match (known.and_then(|at| target.get_mut(at).zip(Some(at))), item) {
                (Some((Value::Object(old), at)), Value::Object(new)) => {
                    self.table(old, new, &format!("{to}/{at}"), &from, origins);
                }
                (_, item) => {
                    self.take_origins(&format!("{to}/{}", target.len()), &from, origins);
                    target.push(item);
                }
            }
        }
    }

    /// Replaces the origins of a value, and of all values inside it, by those of its replacement.
    fn take_origins(&mut self, to: &str, from: &str, origins: &BTreeMap<String, Origin>) {
        let inside = format!("{to}/");
        self.origins
            .retain(|pointer, _| pointer != to && !pointer.starts_with(&inside));
        let within = |pointer: &str| match pointer.strip_prefix(from) {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => Some(format!("{to}{rest}")),
            _ => None,
        };
        let taken = origins
            .iter()
            .filter_map(|(pointer, origin)| Some((within(pointer)?, origin.clone())));
        self.origins.extend(taken.collect::<Vec<_>>());
    }
}

/// Whether a name in a variable matches this item: variables have no lower case letters and no dashes.
fn is_called(item: &Value, word: &str) -> bool {
    let plain = |text: &str| text.to_lowercase().replace(['-', '.'], "_");
    let name = item.get("name").and_then(Value::as_str);
    name.is_some_and(|name| plain(name) == plain(word))
}
