//! Coverage of the data schema: which fields occurred in at least one answer of the golden tests.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::limits;
use crate::module::Module;
use crate::schema::{SchemaView, Section};

/// Fields as `issues[].type`, and whether an answer had them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    fields: BTreeMap<String, bool>,
}

impl Coverage {
    /// All fields of the module's data, none covered.
    pub fn of(module: &Module) -> Self {
        let mut coverage = Self::default();
        if let Some(schema) = module.contract.schema(Section::Data) {
            let shape = SchemaView::new(module.contract.document(), schema);
            coverage.collect(shape, "", 0);
        }
        coverage
    }

    /// The depth is limited, since a schema may contain itself.
    fn collect(&mut self, shape: SchemaView<'_>, path: &str, depth: usize) {
        if depth > limits::COVERED_DEPTH_MAX || self.fields.len() >= limits::COVERED_FIELDS_MAX {
            return;
        }
        for (name, inner) in shape.properties() {
            let field = if path.is_empty() {
                String::from(name)
            } else {
                format!("{path}.{name}")
            };
            self.fields.insert(field.clone(), false);
            self.collect(inner, &field, depth + 1);
        }
        if let Some(items) = shape.items() {
            self.collect(items, &format!("{path}[]"), depth + 1);
        }
    }

    /// Marks the fields of an answer as covered.
    pub fn exercise(&mut self, data: &Value) {
        self.mark(data, "", 0);
    }

    fn mark(&mut self, value: &Value, path: &str, depth: usize) {
        if depth > limits::COVERED_DEPTH_MAX {
            return;
        }
        match value {
            Value::Object(map) => {
                for (name, inner) in map {
                    let field = if path.is_empty() {
                        name.clone()
                    } else {
                        format!("{path}.{name}")
                    };
                    if let Some(seen) = self.fields.get_mut(&field) {
                        *seen = true;
                    }
                    self.mark(inner, &field, depth + 1);
                }
            }
            Value::Array(items) => {
                let path = format!("{path}[]");
                for item in items {
                    self.mark(item, &path, depth + 1);
                }
            }
            _ => {}
        }
    }

    pub fn total(&self) -> usize {
        self.fields.len()
    }

    pub fn exercised(&self) -> usize {
        self.fields.values().filter(|seen| **seen).count()
    }

    /// 100 for a module without fields.
    pub fn percent(&self) -> f64 {
        match self.total() {
            0 => 100.0,
            total => 100.0 * self.exercised() as f64 / total as f64,
        }
    }

    /// Fields that occurred in no answer.
    pub fn missing(&self) -> impl Iterator<Item = &str> {
        let unseen = self.fields.iter().filter(|(_, seen)| !**seen);
        unseen.map(|(field, _)| field.as_str())
    }
}
