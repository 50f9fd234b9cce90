//! Converts the arguments of an `@call` to the input of the called module.
//!
//! | arguments | input |
//! |---|---|
//! | none, or `$INPUT` | the caller's own input |
//! | `$.path` | the value at the path in the caller's input or in the result of an earlier step |
//! | a JSON object | that object; paths and placeholders in its strings are resolved |
//! | anything else | free text with placeholders resolved |

use serde_json::{Map, Value};

use super::expression_scope::ExpressionScope;
use crate::expression::{Path, Variables as _, parse_path};
use crate::input::{FieldUse, free_text};
use crate::prompt;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Arguments {
    Input,
    Path(Path),
    Object(Value),
    Text(String),
}

impl Arguments {
    pub(super) fn read(text: Option<&str>) -> Self {
        let Some(text) = text.filter(|text| !text.is_empty() && *text != "$INPUT") else {
            return Self::Input;
        };
        if text.starts_with('$')
            && let Ok(path) = parse_path(text)
        {
            return Self::Path(path);
        }
        match serde_json::from_str::<Value>(text) {
            Ok(object @ Value::Object(_)) => Self::Object(object),
            _ => Self::Text(String::from(text)),
        }
    }

    /// Every path in the arguments; the steps they refer to must finish first.
    pub(super) fn paths(&self) -> Vec<Path> {
        fn within(value: &Value, paths: &mut Vec<Path>) {
            match value {
                Value::String(text) => paths.extend(parse_path(text).ok()),
                Value::Array(items) => items.iter().for_each(|item| within(item, paths)),
                Value::Object(map) => map.values().for_each(|value| within(value, paths)),
                _ => {}
            }
        }
        let mut paths = Vec::new();
        match self {
            Self::Path(path) => paths.push(path.clone()),
            Self::Object(value) => within(value, &mut paths),
            Self::Input | Self::Text(_) => {}
        }
        paths
    }

    /// Adds the fields of the caller's input that the arguments contain.
    pub(super) fn add_field_use(&self, found: &mut FieldUse) {
        fn within(value: &Value, found: &mut FieldUse) {
            match value {
                Value::String(text) => match parse_path(text) {
                    Ok(path) => found.add_path(&path),
                    Err(_) => {
                        found.add_template(text);
                    }
                },
                Value::Array(items) => items.iter().for_each(|item| within(item, found)),
                Value::Object(map) => map.values().for_each(|value| within(value, found)),
                _ => {}
            }
        }
        match self {
            Self::Input => found.add_whole(),
            Self::Path(path) => found.add_path(path),
            Self::Object(value) => within(value, found),
            Self::Text(text) => {
                found.add_template(text);
            }
        }
    }

    pub(super) fn input(&self, view: &ExpressionScope<'_>, own: &Map<String, Value>) -> Map<String, Value> {
        let value = match self {
            Self::Input => return own.clone(),
            Self::Path(path) => view.find(path).map_or(Value::Null, std::borrow::Cow::into_owned),
            Self::Object(value) => fill(value, view, own),
            Self::Text(text) => Value::String(prompt::fill(text, own)),
        };
        match value {
            Value::Object(map) => map,
            Value::String(text) => free_text(text),
            value => free_text(value.to_string()),
        }
    }
}

fn fill(value: &Value, view: &ExpressionScope<'_>, own: &Map<String, Value>) -> Value {
    match value {
        Value::String(text) => match parse_path(text) {
            Ok(path) => view.find(&path).map_or(Value::Null, std::borrow::Cow::into_owned),
            Err(_) => Value::String(prompt::fill(text, own)),
        },
        Value::Array(items) => items.iter().map(|item| fill(item, view, own)).collect(),
        Value::Object(map) => {
            let filled = map
                .iter()
                .map(|(key, value)| (key.clone(), fill(value, view, own)));
            Value::Object(filled.collect())
        }
        value => value.clone(),
    }
}
