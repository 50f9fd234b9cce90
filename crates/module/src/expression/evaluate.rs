//! Evaluation of expressions: a path yields a value, a condition a boolean. Evaluation never fails: a missing
//! value is absent, and an absent value has no order.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::Value;

use super::condition::{Comparison, Condition, Operand};
use super::path::{Path, PathSegment};

/// The variables in which paths are resolved.
pub trait Variables {
    fn find(&self, path: &Path) -> Option<Cow<'_, Value>>;
}

impl Variables for Value {
    fn find(&self, path: &Path) -> Option<Cow<'_, Value>> {
        select(self, &path.segments)
    }
}

/// The value at `segments`. `[*]` yields the list of the values of all items that have one.
pub fn select<'a>(root: &'a Value, segments: &[PathSegment]) -> Option<Cow<'a, Value>> {
    let mut at = root;
    for (index, segment) in segments.iter().enumerate() {
        let rest = segments.get(index + 1..).unwrap_or_default();
        match segment {
            PathSegment::Name(name) => match at.get(name) {
                Some(next) => at = next,
                None if name == "length" && rest.is_empty() => return length(at).map(Cow::Owned),
                None => return None,
            },
            PathSegment::Index(index) => at = at.get(index)?,
            PathSegment::Every => {
                let items = at.as_array()?.iter();
                let found = items.filter_map(|item| select(item, rest).map(Cow::into_owned));
                return Some(Cow::Owned(Value::Array(found.collect())));
            }
        }
    }
    Some(Cow::Borrowed(at))
}

fn length(value: &Value) -> Option<Value> {
    match value {
        Value::Array(items) => Some(Value::from(items.len())),
        Value::String(text) => Some(Value::from(text.chars().count())),
        Value::Object(map) => Some(Value::from(map.len())),
        _ => None,
    }
}

impl Condition {
    pub fn holds(&self, scope: &dyn Variables) -> bool {
        match self {
            Self::Any(parts) => parts.iter().any(|part| part.holds(scope)),
            Self::All(parts) => parts.iter().all(|part| part.holds(scope)),
            Self::Not(part) => !part.holds(scope),
            Self::Exists(path) => scope.find(path).is_some(),
            Self::Truthy(operand) => operand.value(scope).is_some_and(|value| is_truthy(&value)),
            Self::Compare(left, comparison, right) => {
                let (left, right) = (left.value(scope), right.value(scope));
                comparison.holds(left.as_deref(), right.as_deref())
            }
        }
    }

    /// Every path in the condition.
    pub fn paths(&self) -> Vec<&Path> {
        match self {
            Self::Any(parts) | Self::All(parts) => parts.iter().flat_map(Self::paths).collect(),
            Self::Not(part) => part.paths(),
            Self::Exists(path) | Self::Truthy(Operand::Path(path)) => vec![path],
            Self::Truthy(Operand::Literal(_)) => Vec::new(),
            Self::Compare(left, _, right) => [left, right].into_iter().filter_map(Operand::path).collect(),
        }
    }
}

impl Operand {
    fn value<'a>(&'a self, scope: &'a dyn Variables) -> Option<Cow<'a, Value>> {
        match self {
            Self::Path(path) => scope.find(path),
            Self::Literal(value) => Some(Cow::Borrowed(value)),
        }
    }

    fn path(&self) -> Option<&Path> {
        match self {
            Self::Path(path) => Some(path),
            Self::Literal(_) => None,
        }
    }
}

impl Comparison {
    fn holds(self, left: Option<&Value>, right: Option<&Value>) -> bool {
        let order = || order(left?, right?);
        match self {
            Self::Equal => is_equal(left, right),
            Self::NotEqual => !is_equal(left, right),
            Self::Less => order() == Some(Ordering::Less),
            Self::LessOrEqual => matches!(order(), Some(Ordering::Less | Ordering::Equal)),
            Self::Greater => order() == Some(Ordering::Greater),
            Self::GreaterOrEqual => matches!(order(), Some(Ordering::Greater | Ordering::Equal)),
        }
    }
}

/// Absent equals null; numbers are compared by value, so that 1 equals 1.0.
fn is_equal(left: Option<&Value>, right: Option<&Value>) -> bool {
    let (left, right) = (left.unwrap_or(&Value::Null), right.unwrap_or(&Value::Null));
    match (left.as_f64(), right.as_f64()) {
        (Some(left), Some(right)) => left.total_cmp(&right) == Ordering::Equal || left == right,
        _ => left == right,
    }
}

/// Orders numbers by value and strings by code point; other values have no order.
fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.as_f64()?.partial_cmp(&right.as_f64()?),
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        _ => None,
    }
}

fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => !map.is_empty(),
    }
}
