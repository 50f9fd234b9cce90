//! What a schema says about one place of a value: its types, and the schema of what lies below.

use serde_json::{Map, Value};

use super::resolve;
use crate::limits;

/// Keywords whose schemas speak about the very same value.
const IN_PLACE: &[&str] = &["allOf", "anyOf", "oneOf"];

/// A schema inside its document, so that references can be followed.
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

    /// The schema itself and every alternative that speaks about the same value.
    fn faces(self) -> Vec<&'a Map<String, Value>> {
        let mut faces = Vec::new();
        self.collect(&mut faces, 0);
        faces
    }

    fn collect(self, faces: &mut Vec<&'a Map<String, Value>>, depth: usize) {
        let Value::Object(map) = resolve(self.document, self.schema) else {
            return;
        };
        if depth > limits::NESTING_MAX || faces.len() > limits::NESTING_MAX {
            return;
        }
        faces.push(map);
        for inner in IN_PLACE
            .iter()
            .filter_map(|key| map.get(*key)?.as_array())
            .flatten()
        {
            self.with(inner).collect(faces, depth + 1);
        }
    }

    /// The schema of the property with this name.
    pub(crate) fn property(self, name: &str) -> Option<Self> {
        let faces = self.faces();
        let named = faces.iter().find_map(|map| map.get("properties")?.get(name));
        let other = || faces.iter().find_map(|map| map.get("additionalProperties"));
        named
            .or_else(other)
            .filter(|schema| schema.is_object())
            .map(|schema| self.with(schema))
    }

    /// Every property by its name, in the author's order.
    pub(crate) fn properties(self) -> Vec<(&'a str, Self)> {
        let mut properties: Vec<(&str, Self)> = Vec::new();
        for map in self.faces() {
            let own = map.get("properties").and_then(Value::as_object);
            for (name, schema) in own.into_iter().flatten() {
                if !properties.iter().any(|(known, _)| known == name) {
                    properties.push((name, self.with(schema)));
                }
            }
        }
        properties
    }

    /// The schema of every item of a list.
    pub(crate) fn items(self) -> Option<Self> {
        let items = self.faces().into_iter().find_map(|map| map.get("items"));
        items
            .filter(|items| items.is_object())
            .map(|items| self.with(items))
    }

    /// Whether a value of this type may stand here. Nothing said is nothing known: then the answer is no.
    pub(crate) fn allows(self, wanted: &str) -> bool {
        self.faces().iter().any(|map| match map.get("type") {
            Some(Value::String(kind)) => kind == wanted,
            Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == wanted),
            _ => false,
        })
    }

    /// The values that are listed, if there is a list.
    pub(crate) fn listed(self) -> Vec<&'a Value> {
        let faces = self.faces();
        let lists = faces.iter().filter_map(|map| map.get("enum")?.as_array());
        let single = faces.iter().filter_map(|map| map.get("const"));
        lists.flatten().chain(single).collect()
    }

    /// Whether media items stand here: the fields that only they have are spoken of.
    pub(crate) fn is_media(self) -> bool {
        self.faces().iter().any(|map| {
            let properties = map.get("properties").and_then(Value::as_object);
            properties.is_some_and(|properties| {
                let has = |key: &str| properties.contains_key(key);
                has("type") && ["media_type", "url", "path", "upload_id"].into_iter().any(has)
            })
        })
    }
}
