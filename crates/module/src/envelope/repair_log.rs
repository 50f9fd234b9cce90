//! The log of changes between a reply and its envelope. Each entry of `meta.repairs` is `{pointer, action,
//! before?, after?}`: pointer into the envelope, action, old and new value. Every change has an entry.

use serde_json::{Map, Value};

/// What was done to a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Was absent or null and was set to a conservative default.
    Filled,
    /// Surrounding white space was removed, or upper case was converted.
    Normalised,
    /// Was too long.
    Truncated,
    /// Was a number outside its range.
    Clamped,
    /// Raised to the risk that follows from the data.
    Escalated,
    /// Was removed: only the runtime sets it, or it was null where no value is allowed.
    Removed,
    /// Was replaced by a value that the published envelope allows.
    Replaced,
    /// An older answer, or a bare object, was wrapped in an envelope.
    Wrapped,
}

impl Action {
    fn as_str(self) -> &'static str {
        match self {
            Self::Filled => "filled",
            Self::Normalised => "normalised",
            Self::Truncated => "truncated",
            Self::Clamped => "clamped",
            Self::Escalated => "escalated",
            Self::Removed => "removed",
            Self::Replaced => "replaced",
            Self::Wrapped => "wrapped",
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct RepairLog(Vec<Value>);

impl RepairLog {
    pub(super) fn record(
        &mut self,
        pointer: impl Into<String>,
        action: Action,
        before: Option<Value>,
        after: Option<Value>,
    ) {
        let mut entry = Map::new();
        entry.insert(String::from("pointer"), Value::String(pointer.into()));
        entry.insert(String::from("action"), Value::from(action.as_str()));
        if let Some(before) = before {
            entry.insert(String::from("before"), before);
        }
        if let Some(after) = after {
            entry.insert(String::from("after"), after);
        }
        self.0.push(Value::Object(entry));
    }

    /// Removes the entries of a meta that is discarded.
    pub(super) fn drop_meta_entries(&mut self) {
        let about_meta = |entry: &Value| {
            entry
                .get("pointer")
                .and_then(Value::as_str)
                .is_some_and(|pointer| pointer.starts_with("/meta"))
        };
        self.0.retain(|entry| !about_meta(entry));
    }

    /// The list for `meta.repairs`; `None` when nothing was changed.
    pub(super) fn into_value(self) -> Option<Value> {
        (!self.0.is_empty()).then_some(Value::Array(self.0))
    }
}
