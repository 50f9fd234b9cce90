//! Folds chunks into data: text is appended to strings, values are replaced. Missing objects and arrays on
//! the path are created, and an array can grow by its next element. A path through a value of another type is
//! refused and changes nothing.

use serde_json::{Map, Value};

use super::field::PathStep;
use crate::limits;

/// Why a chunk cannot be applied to the current data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ApplyError {
    #[error("the field path passes through a value of another type")]
    WrongKind,
    #[error("the field path skips elements of an array")]
    BeyondEnd,
    #[error("text can only be appended to a string")]
    NotText,
    #[error("all of the data can only be replaced by an object")]
    NotObject,
    #[error("the data nests too deeply")]
    TooDeep,
}

/// Appends text to the string at `steps` and returns the whole string.
pub(super) fn append<'a>(
    data: &'a mut Map<String, Value>,
    steps: &[PathStep],
    text: &str,
) -> Result<&'a mut String, ApplyError> {
    check_path(data, steps, |present| match present {
        None | Some(Value::String(_)) => Ok(()),
        Some(_) => Err(ApplyError::NotText),
    })?;
    match enter(data, steps).ok_or(ApplyError::NotText)? {
        Value::String(string) => {
            string.push_str(text);
            Ok(string)
        }
        slot => {
            *slot = Value::from(text);
            match slot {
                Value::String(string) => Ok(string),
                _ => Err(ApplyError::NotText),
            }
        }
    }
}

/// Sets the value at `steps`; without steps it replaces all data.
pub(super) fn replace(
    data: &mut Map<String, Value>,
    steps: &[PathStep],
    value: Value,
) -> Result<(), ApplyError> {
    // Data nested deeper than documents may be could not be parsed again.
    let room = limits::NESTING_MAX.saturating_sub(steps.len());
    if !fits(&value, room) {
        return Err(ApplyError::TooDeep);
    }
    if steps.is_empty() {
        let Value::Object(map) = value else {
            return Err(ApplyError::NotObject);
        };
        *data = map;
        return Ok(());
    }
    check_path(data, steps, |_| Ok(()))?;
    if let Some(slot) = enter(data, steps) {
        *slot = value;
    }
    Ok(())
}

/// Follows `steps` as far as values exist and checks whether the rest can be created.
fn check_path(
    data: &Map<String, Value>,
    steps: &[PathStep],
    last: impl Fn(Option<&Value>) -> Result<(), ApplyError>,
) -> Result<(), ApplyError> {
    let Some((first, rest)) = steps.split_first() else {
        return Err(ApplyError::NotText);
    };
    let PathStep::Key(key) = first else {
        return Err(ApplyError::WrongKind);
    };
    let mut present = data.get(key);
    for step in rest {
        present = match (present, step) {
            (Some(Value::Object(map)), PathStep::Key(key)) => map.get(key),
            (Some(Value::Array(items)), PathStep::Index(index)) if *index <= items.len() => items.get(*index),
            (None, PathStep::Key(_) | PathStep::Index(0)) => None,
            (Some(Value::Array(_)) | None, PathStep::Index(_)) => return Err(ApplyError::BeyondEnd),
            (Some(_), _) => return Err(ApplyError::WrongKind),
        };
    }
    last(present)
}

/// The value at `steps`, created if missing. Call [`check_path`] first.
fn enter<'a>(data: &'a mut Map<String, Value>, steps: &[PathStep]) -> Option<&'a mut Value> {
    let (first, rest) = steps.split_first()?;
    let PathStep::Key(key) = first else { return None };
    let mut slot = member(data, key);
    for step in rest {
        match step {
            PathStep::Key(key) => {
                if slot.is_null() {
                    *slot = Value::Object(Map::new());
                }
                slot = member(slot.as_object_mut()?, key);
            }
            PathStep::Index(index) => {
                if slot.is_null() {
                    *slot = Value::Array(Vec::new());
                }
                let items = slot.as_array_mut()?;
                if *index == items.len() {
                    items.push(Value::Null);
                }
                slot = items.get_mut(*index)?;
            }
        }
    }
    Some(slot)
}

fn member<'a>(map: &'a mut Map<String, Value>, key: &str) -> &'a mut Value {
    // The key is copied only when it is new: it exists for all deltas but the first.
    if !map.contains_key(key) {
        map.insert(String::from(key), Value::Null);
    }
    &mut map[key]
}

fn fits(value: &Value, room: usize) -> bool {
    match value {
        Value::Array(items) => room > 0 && items.iter().all(|item| fits(item, room - 1)),
        Value::Object(map) => room > 0 && map.values().all(|item| fits(item, room - 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

/// Approximate memory size of a value, down to `room` levels.
pub(super) fn weight(value: &Value, room: usize) -> usize {
    let inside = match value {
        Value::String(text) => text.len(),
        Value::Array(items) if room > 0 => items.iter().map(|item| weight(item, room - 1)).sum(),
        Value::Object(map) if room > 0 => weigh_map(map, room - 1),
        _ => 0,
    };
    size_of::<Value>() + inside
}

pub(super) fn weigh_map(map: &Map<String, Value>, room: usize) -> usize {
    map.iter()
        .map(|(key, value)| key.len() + weight(value, room))
        .sum()
}
