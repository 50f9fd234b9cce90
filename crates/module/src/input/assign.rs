//! Assigns `key=value` and `key:=json` to an input. The schema decides the type of a value: `3` becomes a
//! number for a number field and a string for a string field.

use std::fmt;

use serde_json::{Map, Number, Value};

use super::free_text::FREE_TEXT_KEY;
use crate::diagnostic::nearest;
use crate::limits;
use crate::module::Module;
use crate::schema::{SchemaView, Section};

/// Why an assignment was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssignError {
    pub message: String,
    pub hint: Option<String>,
}

impl AssignError {
    fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: None,
        }
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for AssignError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for AssignError {}

/// Assigns one `key=value` to the input. Names are separated by dots, list items are numbered from 0
/// (`author.name`, `items.0.label`); a dot inside a name is written `\.`. A value for a list is appended,
/// unless it is a complete list in JSON.
pub fn assign(module: &Module, input: &mut Map<String, Value>, text: &str) -> Result<(), AssignError> {
    let Some((key, value)) = text.split_once('=') else {
        let error = AssignError::new(format!("`{text}` is not of the form key=value"));
        return Err(error.hint("key=value uses the type from the input schema, key:=json expects JSON"));
    };
    let (key, value) = match key.strip_suffix(':') {
        Some(key) => (key, Assignment::Json(value)),
        None => (key, Assignment::Text(value)),
    };
    let names = names(key)?;
    let contract = &module.contract;
    let shape = contract
        .schema(Section::Input)
        .map(|schema| SchemaView::new(contract.document(), schema));
    if let (Some(shape), Some(first)) = (shape, names.first())
        && !first.starts_with('_')
        && first != FREE_TEXT_KEY
    {
        check_known(shape, &names, key)?;
    }
    let mut root = Value::Object(std::mem::take(input));
    let done = put(&mut root, &names, shape, value, key);
    if let Value::Object(map) = root {
        *input = map;
    }
    done
}

/// Refuses a name that the schema does not declare, unless it allows others.
fn check_known(shape: SchemaView<'_>, names: &[String], key: &str) -> Result<(), AssignError> {
    let mut shape = shape;
    for name in names {
        let is_index = shape.items().is_some() && name.bytes().all(|byte| byte.is_ascii_digit());
        let inner = if is_index {
            shape.items()
        } else {
            shape.property(name)
        };
        if inner.is_none() && !is_index && !shape.is_open() && !shape.declares(name) {
            let known = shape.properties();
            let known: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            let hint = match nearest(name, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known fields: {}", known.join(", ")),
            };
            return Err(
                AssignError::new(format!("`{key}`: the input schema has no field `{name}`")).hint(hint),
            );
        }
        match inner {
            Some(inner) => shape = inner,
            None => break,
        }
    }
    Ok(())
}

#[derive(Clone, Copy, Debug)]
enum Assignment<'a> {
    Text(&'a str),
    Json(&'a str),
}

fn names(key: &str) -> Result<Vec<String>, AssignError> {
    let mut names = vec![String::new()];
    let mut letters = key.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '.' => names.push(String::new()),
            letter => {
                let escaped = (letter == '\\').then(|| letters.next_if_eq(&'.')).flatten();
                if let Some(name) = names.last_mut() {
                    name.push(escaped.unwrap_or(letter));
                }
            }
        }
    }
    if names.iter().any(String::is_empty) {
        return Err(AssignError::new(format!("`{key}` contains an empty name")));
    }
    if names.len() > limits::NESTING_MAX {
        return Err(AssignError::new(format!("`{key}` is nested too deeply")));
    }
    Ok(names)
}

fn put(
    target: &mut Value,
    names: &[String],
    shape: Option<SchemaView<'_>>,
    given: Assignment<'_>,
    key: &str,
) -> Result<(), AssignError> {
    let Some((name, rest)) = names.split_first() else {
        return settle(target, shape, given, key);
    };
    let wants_list = target.is_array() || (target.is_null() && shape.is_some_and(|s| s.allows("array")));
    if wants_list {
        let index: usize = name
            .parse()
            .map_err(|_| AssignError::new(format!("`{name}` in `{key}` is not a list index")))?;
        let Value::Array(items) = or_new(target, Value::Array(Vec::new())) else {
            return Err(not_an_object(name, key));
        };
        if index > items.len() {
            let next = items.len();
            return Err(AssignError::new(format!(
                "`{key}` skips list items: the next index is {next}"
            )));
        }
        if index == items.len() {
            items.push(Value::Null);
        }
        return match items.get_mut(index) {
            Some(item) => put(item, rest, shape.and_then(SchemaView::items), given, key),
            None => Ok(()),
        };
    }
    let Value::Object(map) = or_new(target, Value::Object(Map::new())) else {
        return Err(not_an_object(name, key));
    };
    let below = map.entry(name.clone()).or_insert(Value::Null);
    put(
        below,
        rest,
        shape.and_then(|shape| shape.property(name)),
        given,
        key,
    )
}

fn or_new(target: &mut Value, new: Value) -> &mut Value {
    if target.is_null() {
        *target = new;
    }
    target
}

fn not_an_object(name: &str, key: &str) -> AssignError {
    AssignError::new(format!(
        "`{key}` is invalid: the value before `{name}` is not an object"
    ))
}

fn settle(
    target: &mut Value,
    shape: Option<SchemaView<'_>>,
    given: Assignment<'_>,
    key: &str,
) -> Result<(), AssignError> {
    let text = match given {
        Assignment::Json(text) => {
            *target = serde_json::from_str(text)
                .map_err(|error| AssignError::new(format!("the value of `{key}` is not JSON: {error}")))?;
            return Ok(());
        }
        Assignment::Text(text) => text,
    };
    let is_list = shape.is_some_and(|shape| shape.allows("array") && !shape.allows("string"));
    if is_list && !text.trim_start().starts_with('[') {
        let item = read(text, shape.and_then(SchemaView::items), key)?;
        match or_new(target, Value::Array(Vec::new())) {
            Value::Array(items) => items.push(item),
            other => *other = Value::Array(vec![item]),
        }
        return Ok(());
    }
    *target = read(text, shape, key)?;
    Ok(())
}

/// Parses the text by the type in the schema.
fn read(text: &str, shape: Option<SchemaView<'_>>, key: &str) -> Result<Value, AssignError> {
    let Some(shape) = shape else {
        return Ok(Value::from(text));
    };
    let listed = shape.listed();
    let matching = listed.iter().find(|value| match value {
        Value::String(word) => word == text,
        other => other.to_string() == text,
    });
    if let Some(value) = matching {
        return Ok((*value).clone());
    }
    if shape.allows("string") {
        return Ok(Value::from(text));
    }
    let wrong = |wanted: &str| AssignError::new(format!("`{key}` must be {wanted}, not `{text}`"));
    if text == "null" && shape.allows("null") {
        return Ok(Value::Null);
    }
    let number = || serde_json::from_str::<Number>(text).ok().map(Value::Number);
    if shape.allows("integer") || shape.allows("number") {
        if let Some(number) = number() {
            return Ok(number);
        }
        if !shape.allows("boolean") {
            return Err(wrong("a number"));
        }
    }
    if shape.allows("boolean") {
        return match text {
            "true" => Ok(Value::Bool(true)),
            "false" => Ok(Value::Bool(false)),
            _ => Err(wrong("true or false")),
        };
    }
    if shape.allows("object") || shape.allows("array") {
        let whole = serde_json::from_str(text).map_err(|_| {
            wrong("an object or a list").hint(format!("`{key}.name=value` sets one field, `{key}:=json` all"))
        });
        return whole;
    }
    Ok(Value::from(text))
}
