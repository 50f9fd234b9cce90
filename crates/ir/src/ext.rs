//! Fields that the IR does not define, scoped to the dialect or provider they came from. They are encoded
//! unchanged for that dialect; for any other dialect they are a reported loss. A key that begins with `$`
//! is a note about the source's form (a string instead of a list), carries no information, and is never a
//! loss.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::dialect::Dialect;

pub type Map = serde_json::Map<String, Value>;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ext(BTreeMap<String, Map>);

impl Ext {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// An `Ext` with the leftover fields of one dialect; empty if there are none.
    pub fn of(dialect: Dialect, rest: Map) -> Self {
        let mut ext = Self::default();
        ext.extend(dialect, rest);
        ext
    }

    /// All field names, over all dialects.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.values().flat_map(Map::keys).map(String::as_str)
    }

    pub fn get(&self, dialect: Dialect) -> Option<&Map> {
        self.0.get(dialect.as_str())
    }

    pub fn value(&self, dialect: Dialect, key: &str) -> Option<&Value> {
        self.get(dialect)?.get(key)
    }

    /// A note about form, as text.
    pub fn note(&self, dialect: Dialect, key: &str) -> Option<&str> {
        self.value(dialect, key)?.as_str()
    }

    pub fn set(&mut self, dialect: Dialect, key: &str, value: impl Into<Value>) {
        self.scope(dialect.as_str())
            .insert(String::from(key), value.into());
    }

    /// Appends to the list `key` of this dialect.
    pub fn push(&mut self, dialect: Dialect, key: &str, value: Value) {
        let slot = self
            .scope(dialect.as_str())
            .entry(key)
            .or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(list) = slot {
            list.push(value);
        }
    }

    pub fn remove(&mut self, dialect: Dialect, key: &str) -> Option<Value> {
        let scope = self.0.get_mut(dialect.as_str())?;
        let value = scope.shift_remove(key);
        if scope.is_empty() {
            self.0.remove(dialect.as_str());
        }
        value
    }

    /// Removes and returns all fields of a dialect.
    pub fn take(&mut self, dialect: Dialect) -> Option<Map> {
        self.0.remove(dialect.as_str())
    }

    /// Stores leftover fields of a dialect. A field whose own name begins with `$` is stored under `$$`, so
    /// that it is not mistaken for a note.
    pub fn extend(&mut self, dialect: Dialect, rest: Map) {
        if rest.is_empty() {
            return;
        }
        let scope = self.scope(dialect.as_str());
        for (key, value) in rest {
            let key = if key.starts_with('$') {
                format!("${key}")
            } else {
                key
            };
            scope.insert(key, value);
        }
    }

    /// Merges a later `Ext`: its values take precedence, objects are merged and lists are concatenated.
    pub fn merge(&mut self, other: Self) {
        for (name, rest) in other.0 {
            let scope = self.0.entry(name).or_default();
            for (key, value) in rest {
                grow(scope, key, value);
            }
        }
    }

    /// Writes the fields of this dialect into `target`, without notes about form. Existing fields of
    /// `target` are not overwritten; objects are merged.
    pub fn restore(&self, dialect: Dialect, target: &mut Map) {
        for (key, value) in self.get(dialect).into_iter().flatten() {
            match key.strip_prefix('$') {
                None => put_missing(target, key, value),
                Some(own) if own.starts_with('$') => put_missing(target, own, value),
                Some(_) => {}
            }
        }
    }

    /// Every field of dialects other than `dialect`, as (dialect, field, value), without notes about form
    /// and empty values, which carry no information.
    pub fn foreign(&self, dialect: Dialect) -> impl Iterator<Item = (&str, &str, &Value)> {
        self.0
            .iter()
            .filter(move |(name, _)| name.as_str() != dialect.as_str())
            .flat_map(|(name, rest)| {
                rest.iter()
                    .map(move |(key, value)| (name.as_str(), key.as_str(), value))
            })
            .filter(|(_, key, value)| !is_note(key) && has_content(value))
    }

    /// The same without notes about form and empty values.
    #[must_use]
    pub fn without_notes(mut self) -> Self {
        for rest in self.0.values_mut() {
            rest.retain(|key, value| !is_note(key) && has_content(value));
        }
        self.0.retain(|_, rest| !rest.is_empty());
        self
    }

    fn scope(&mut self, name: &str) -> &mut Map {
        self.0.entry(String::from(name)).or_default()
    }
}

fn has_content(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty(),
        _ => true,
    }
}

fn is_note(key: &str) -> bool {
    key.starts_with('$') && !key.starts_with("$$")
}

fn put_missing(target: &mut Map, key: &str, value: &Value) {
    match (target.get_mut(key), value) {
        (None, _) => {
            target.insert(String::from(key), value.clone());
        }
        (Some(Value::Object(inner)), Value::Object(more)) => {
            for (key, value) in more {
                put_missing(inner, key, value);
            }
        }
        (Some(_), _) => {}
    }
}

fn grow(target: &mut Map, key: String, value: Value) {
    match (target.get_mut(&key), value) {
        (Some(Value::Object(inner)), Value::Object(more)) => {
            for (key, value) in more {
                grow(inner, key, value);
            }
        }
        (Some(Value::Array(list)), Value::Array(more)) => list.extend(more),
        (_, value) => {
            target.insert(key, value);
        }
    }
}
