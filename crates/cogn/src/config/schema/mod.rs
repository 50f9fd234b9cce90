//! Validates the merged tree against the schema: all problems, each with its origin, and with a suggestion
//! for misspelt names.

use std::fmt;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, ValidationError};
use module::diagnostic::nearest;
use serde_json::Value;

use super::layer::{Origin, escape};
use super::merged::Merged;
use super::rule::rules;

/// Also used by editors for completion.
pub(crate) const SCHEMA: &str = include_str!("../../../../../docs/reference/config.schema.json");

/// One problem of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// Dotted key: `backends.fast.weight`.
    pub(crate) key: String,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    pub(crate) origin: Option<Origin>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(origin) = &self.origin {
            write!(f, "{origin}: ")?;
        }
        write!(f, "{}: {}", self.key, self.message)
    }
}

pub(crate) fn problems(merged: &Merged) -> anyhow::Result<Vec<Problem>> {
    let schema: Value = serde_json::from_str(SCHEMA)?;
    let validator = jsonschema::options().with_draft(Draft::Draft7).build(&schema)?;
    let tree = Value::Object(merged.tree.clone());
    let mut problems: Vec<_> = validator
        .iter_errors(&tree)
        .flat_map(|error| describe(&error, merged, &schema))
        .collect();
    problems.extend(rules(merged));
    Ok(problems)
}

fn describe(error: &ValidationError<'_>, merged: &Merged, schema: &Value) -> Vec<Problem> {
    let pointer = error.instance_path().to_string();
    let problem = |pointer: &str, message: String, hint: Option<String>| Problem {
        key: merged.dotted(pointer),
        message,
        hint,
        origin: merged.origin(pointer).cloned(),
    };
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let known = known_keys(&error.schema_path().to_string(), schema);
            let one = |key: &String| {
                let near = nearest(key, known.iter().map(String::as_str));
                let hint = near.map(|near| format!("did you mean `{near}`?"));
                let hint = hint.or_else(|| Some(format!("known keys: {}", known.join(", "))));
                problem(
                    &format!("{pointer}/{}", escape(key)),
                    format!("unknown key `{key}`"),
                    hint,
                )
            };
            unexpected.iter().map(one).collect()
        }
        ValidationErrorKind::Enum { options } => {
            let options: Vec<&str> = options
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            let given = error.instance().as_str().unwrap_or_default();
            let near = nearest(given, options.iter().copied());
            let hint = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("one of {}", options.join(", ")),
            };
            vec![problem(
                &pointer,
                format!("{} is not a valid value", error.instance()),
                Some(hint),
            )]
        }
        ValidationErrorKind::Required { property } => {
            let key = property.as_str().unwrap_or_default();
            vec![problem(&pointer, format!("`{key}` is missing"), None)]
        }
        _ => vec![problem(&pointer, error.to_string(), None)],
    }
}

/// The keys that the schema allows in the table with the unknown key.
fn known_keys(schema_path: &str, schema: &Value) -> Vec<String> {
    let object = schema_path.trim_end_matches("/additionalProperties");
    let properties = schema
        .pointer(object)
        .and_then(|schema| schema.get("properties"))
        .and_then(Value::as_object);
    properties
        .into_iter()
        .flatten()
        .map(|(key, _)| key.clone())
        .collect()
}

#[cfg(test)]
mod tests;
