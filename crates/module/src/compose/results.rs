//! The results of the finished steps of a composition, in completion order.

use serde_json::{Map, Value};

use super::segment::{Segment, segments};
use crate::expression::{parse_path, select};

/// The fields of a result's `meta` that are shown to other models.
const META_SHOWN: &[&str] = &["confidence", "risk", "explain"];

/// Envelopes by step. A skipped step and a failed optional step are null.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results(Map<String, Value>);

impl Results {
    pub fn get(&self, step: &str) -> Option<&Value> {
        self.0.get(step)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(step, envelope)| (step.as_str(), envelope))
    }

    pub(super) fn insert(&mut self, step: &str, envelope: Value) {
        self.0.insert(String::from(step), envelope);
    }

    /// The text for a placeholder such as `{{name.data.summary}}`; `None` if there is no such step.
    pub(crate) fn injected(&self, path: &str) -> Option<String> {
        let name = path.split(['.', '[']).next().unwrap_or(path);
        let envelope = self.0.get(name)?;
        let rest = path.get(name.len()..).unwrap_or_default();
        let path = parse_path(&format!("${rest}")).ok()?;
        Some(match select(envelope, &path.segments).as_deref() {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(value) => pretty(value),
        })
    }

    /// The text that replaces a call in the prompt.
    pub(crate) fn of_call(&self, step: &str) -> Option<String> {
        let envelope = self.0.get(step)?;
        Some(format!(
            "[Result from @call:{step}]:\n{}",
            pretty(&shown(envelope))
        ))
    }

    /// The results that the template does not reference, to be appended to it.
    pub(crate) fn unreferenced(&self, template: &str) -> String {
        if self.is_empty() {
            return String::new();
        }
        let mut places = segments(template);
        places.retain(|segment| !matches!(segment, Segment::Text(_)));
        let is_shown = |step: &str| {
            places.iter().any(|segment| match segment {
                Segment::Text(_) => false,
                Segment::Call(call) => call.name == step.split('#').next().unwrap_or(step),
                Segment::Result { path, .. } => path.split(['.', '[']).next() == Some(step),
            })
        };
        let mut text = String::new();
        for (step, envelope) in self.iter().filter(|(step, _)| !is_shown(step)) {
            text.push_str(&format!(
                "\n\n[Result from {step}]:\n{}\n",
                pretty(&shown(envelope))
            ));
        }
        text
    }
}

/// A result as shown to a model, without annotations of the runtime.
fn shown(envelope: &Value) -> Value {
    let Value::Object(map) = envelope else {
        return Value::Null;
    };
    let mut shown = Map::new();
    for (key, value) in map.iter().filter(|(key, _)| !key.starts_with('_')) {
        let value = match (key.as_str(), value) {
            ("meta", Value::Object(meta)) => {
                let kept = meta.iter().filter(|(key, _)| META_SHOWN.contains(&key.as_str()));
                Value::Object(kept.map(|(key, value)| (key.clone(), value.clone())).collect())
            }
            (_, value) => value.clone(),
        };
        shown.insert(key.clone(), value);
    }
    Value::Object(shown)
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}
