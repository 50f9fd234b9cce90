//! A finding: one line of the report.

use serde_json::{Value, json};

#[derive(Clone, Debug)]
pub(super) struct Finding {
    pub(super) name: String,
    pub(super) state: State,
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Ok,
    /// Something is missing that not every run needs.
    Warn,
    /// Runs will fail.
    Error,
}

impl Finding {
    pub(super) fn ok(name: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            state: State::Ok,
            message: message.into(),
            hint: None,
        }
    }

    pub(super) fn warn(name: impl Into<String>, message: impl Into<String>, hint: &str) -> Self {
        Self {
            state: State::Warn,
            hint: Some(String::from(hint)),
            ..Self::ok(name, message)
        }
    }

    pub(super) fn bad(name: impl Into<String>, message: impl Into<String>, hint: &str) -> Self {
        Self {
            state: State::Error,
            ..Self::warn(name, message, hint)
        }
    }

    pub(super) fn json(&self) -> Value {
        let state = match self.state {
            State::Ok => "ok",
            State::Warn => "warn",
            State::Error => "bad",
        };
        json!({"name": self.name, "state": state, "message": self.message, "hint": self.hint})
    }
}
