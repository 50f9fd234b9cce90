//! A view of a schema at one position of a value: its types, and the schemas of its members.

use serde_json::{Map, Value};

use super::resolve;
use crate::limits;

/// Keywords whose schemas apply to the same value.
const IN_PLACE: &[&str] = &["allOf", "anyOf", "oneOf"];

/// A schema with its document, so that references can be resolved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SchemaView<'a> {
    document: &'a Value,
    schema: &'a Value,
}

impl<'a> SchemaView<'a> {
    pub(crate) fn new(document: &'a Value, schema: &'a Value) -> Self {
        Self { document, schema }
    }

    fn with(self, schema: &'a Value) -> Self {
        Self { schema, ..self }
    }

    /// The schema itself and every alternative for the same value.
    fn alternatives(self) -> Vec<&'a Map<String, Value>> {
        self.in_place(IN_PLACE)
    }

    /// The schema itself and the schemas below these keywords, in the author's order. Each is visited once, however
    /// often it is referenced.
    fn in_place(self, keywords: &[&str]) -> Vec<&'a Map<String, Value>> {
        let mut found: Vec<&Map<String, Value>> = Vec::new();
        let mut waiting = vec![self.schema];
        while let Some(schema) = waiting.pop() {
            let Value::Object(map) = resolve(self.document, schema) else {
                continue;
            };
            if found.len() > limits::NESTING_MAX || found.iter().any(|known| std::ptr::eq(*known, map)) {
                continue;
            }
            found.push(map);
            let lists = keywords.iter().rev().filter_map(|key| map.get(*key)?.as_array());
            waiting.extend(lists.flat_map(|list| list.iter().rev()));
        }
        found
    }

    /// The schema of the property with this name.
    pub(crate) fn property(self, name: &str) -> Option<Self> {
        let alternatives = self.alternatives();
        let named = alternatives
            .iter()
            .find_map(|map| map.get("properties")?.get(name));
        let other = || {
            alternatives
                .iter()
                .find_map(|map| map.get("additionalProperties"))
        };
        named
            .or_else(other)
            .filter(|schema| schema.is_object())
            .map(|schema| self.with(schema))
    }

    /// The names of required properties. Those of alternatives are not required in every case.
    pub(crate) fn required(self) -> Vec<&'a str> {
        let mut names = Vec::new();
        for map in self.in_place(&["allOf"]) {
            let own = map.get("required").and_then(Value::as_array);
            for name in own.into_iter().flatten().filter_map(Value::as_str) {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        names
    }

    /// Whether a property with this name is declared.
    pub(crate) fn declares(self, name: &str) -> bool {
        let alternatives = self.alternatives();
        let named =
            |map: &&Map<String, Value>| map.get("properties").is_some_and(|own| own.get(name).is_some());
        alternatives.iter().any(named)
    }

    /// Whether properties without a declaration are intended: none is declared, or a schema for others is.
    pub(crate) fn is_open(self) -> bool {
        let alternatives = self.alternatives();
        let has = |key: &str| alternatives.iter().any(|map| map.contains_key(key));
        let others = alternatives
            .iter()
            .filter_map(|map| map.get("additionalProperties"));
        let mut others = others.filter(|others| others.is_object() || **others == Value::Bool(true));
        !has("properties") || has("patternProperties") || others.next().is_some()
    }

    /// All properties by name, in the author's order.
    pub(crate) fn properties(self) -> Vec<(&'a str, Self)> {
        let mut properties: Vec<(&str, Self)> = Vec::new();
        for map in self.alternatives() {
            let own = map.get("properties").and_then(Value::as_object);
            for (name, schema) in own.into_iter().flatten() {
                if !properties.iter().any(|(known, _)| known == name) {
                    properties.push((name, self.with(schema)));
                }
            }
        }
        properties
    }

    /// The schema of the items of a list.
    pub(crate) fn items(self) -> Option<Self> {
        let items = self.alternatives().into_iter().find_map(|map| map.get("items"));
        items
            .filter(|items| items.is_object())
            .map(|items| self.with(items))
    }

    /// Whether a value of this type is allowed. False if the schema declares no type.
    pub(crate) fn allows(self, wanted: &str) -> bool {
        self.alternatives().iter().any(|map| match map.get("type") {
            Some(Value::String(kind)) => kind == wanted,
            Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == wanted),
            _ => false,
        })
    }

    /// The values of `enum` or `const`, if any.
    pub(crate) fn listed(self) -> Vec<&'a Value> {
        let alternatives = self.alternatives();
        let lists = alternatives.iter().filter_map(|map| map.get("enum")?.as_array());
        let single = alternatives.iter().filter_map(|map| map.get("const"));
        lists.flatten().chain(single).collect()
    }

    /// Whether a media item is expected: the schema declares fields that only media items have.
    pub(crate) fn is_media(self) -> bool {
        self.alternatives().iter().any(|map| {
            let properties = map.get("properties").and_then(Value::as_object);
            properties.is_some_and(|properties| {
                let has = |key: &str| properties.contains_key(key);
                has("type") && ["media_type", "url", "path", "upload_id"].into_iter().any(has)
            })
        })
    }
}
