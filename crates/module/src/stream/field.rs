//! The `field` of a chunk: the path of a value in `data`. Plain keys follow a dot, indices are written in
//! brackets (`data.items[0].label`). A key that is empty or contains a dot, a bracket or a quotation mark is
//! written as a JSON string in brackets (`data["a.b"]`), so that each path has exactly one spelling.

use std::fmt::Write as _;

use serde_json::Value;

use crate::limits;

/// The root of every field: all of the data.
pub const ROOT: &str = "data";

/// One step below the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathStep {
    Key(String),
    Index(usize),
}

/// Appends the step into an object to a field.
pub fn push_key(field: &mut String, key: &str) {
    if is_plain(key) {
        field.push('.');
        field.push_str(key);
    } else {
        field.push('[');
        field.push_str(&Value::from(key).to_string());
        field.push(']');
    }
}

/// Appends the step to an element of an array.
pub fn push_index(field: &mut String, index: usize) {
    // Writing to a string cannot fail.
    write!(field, "[{index}]").unwrap_or_default();
}

/// Parses a field into its steps; `data` alone has none. `None` if it is not a field or exceeds the nesting
/// limit.
pub fn parse(field: &str) -> Option<Vec<PathStep>> {
    let mut rest = field.strip_prefix(ROOT)?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if steps.len() >= limits::NESTING_MAX {
            return None;
        }
        let (step, after) = if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            let key = after.get(..end)?;
            if !is_plain(key) {
                return None;
            }
            (PathStep::Key(String::from(key)), after.get(end..)?)
        } else {
            let after = rest.strip_prefix('[')?;
            if after.starts_with('"') {
                quoted(after)?
            } else {
                let (digits, after) = after.split_once(']')?;
                (PathStep::Index(index(digits)?), after)
            }
        };
        steps.push(step);
        rest = after;
    }
    Some(steps)
}

fn is_plain(key: &str) -> bool {
    !key.is_empty() && !key.contains(['.', '[', ']', '"'])
}

fn index(digits: &str) -> Option<usize> {
    let canonical = digits == "0" || !digits.starts_with('0');
    let plain = canonical && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}

/// A key written as a JSON string, and the text after its bracket.
fn quoted(text: &str) -> Option<(PathStep, &str)> {
    let mut strings = serde_json::Deserializer::from_str(text).into_iter::<String>();
    let key = strings.next()?.ok()?;
    let after = text.get(strings.byte_offset()..)?.strip_prefix(']')?;
    Some((PathStep::Key(key), after))
}
