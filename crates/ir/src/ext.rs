//! What a document carried that has no word of its own here, scoped to the dialect or provider it came
//! from. It returns to that dialect unchanged; towards any other dialect it is a loss that is named.
//! A key that begins with `$` is a note about the form of the source (a string where a list could
//! stand), not information, and is never a loss.

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

    /// With what one dialect left over; nothing is kept of an empty rest.
    pub fn of(dialect: Dialect, rest: Map) -> Self {
        let mut ext = Self::default();
        ext.extend(dialect, rest);
        ext
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

    /// Adds to a list that this dialect keeps under `key`.
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

    /// Everything one dialect left, taken out.
    pub fn take(&mut self, dialect: Dialect) -> Option<Map> {
        self.0.remove(dialect.as_str())
    }

    pub fn extend(&mut self, dialect: Dialect, rest: Map) {
        if !rest.is_empty() {
            self.scope(dialect.as_str()).extend(rest);
        }
    }

    /// Takes over what `other` holds; its values win.
    pub fn merge(&mut self, other: Self) {
        for (name, rest) in other.0 {
            self.0.entry(name).or_default().extend(rest);
        }
    }

    /// Writes what this dialect left over into `target`, notes about form apart. What is already there
    /// stays: a field with a word of its own is never overruled from here.
    pub fn restore(&self, dialect: Dialect, target: &mut Map) {
        for (key, value) in self.get(dialect).into_iter().flatten() {
            if !key.starts_with('$') && !target.contains_key(key) {
                target.insert(key.clone(), value.clone());
            }
        }
    }

    /// Every kept field of dialects other than `dialect`, as (dialect, field, value). Notes about form
    /// and nulls carry no information and are left out.
    pub fn foreign(&self, dialect: Dialect) -> impl Iterator<Item = (&str, &str, &Value)> {
        self.0
            .iter()
            .filter(move |(name, _)| name.as_str() != dialect.as_str())
            .flat_map(|(name, rest)| {
                rest.iter()
                    .map(move |(key, value)| (name.as_str(), key.as_str(), value))
            })
            .filter(|(_, key, value)| !key.starts_with('$') && !value.is_null())
    }

    fn scope(&mut self, name: &str) -> &mut Map {
        self.0.entry(String::from(name)).or_default()
    }
}
