//! The error of a failed answer. Its code is a registered code, a module's own code, or a legacy spelling.

use serde_json::{Map, Value};

use crate::code::{Code, Recoverable};

#[derive(Clone, Debug, PartialEq)]
pub struct ErrorBody {
    pub code: String,
    pub message: String,
    pub recoverable: bool,
    pub suggestion: Option<String>,
    pub details: Option<Map<String, Value>>,
    /// Further fields of a module's error.
    pub more: Map<String, Value>,
}

impl ErrorBody {
    /// An error with the registry's suggestion and its usual recoverability.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code: String::from(code.as_str()),
            message: message.into(),
            recoverable: code.recoverable() == Recoverable::Yes,
            suggestion: Some(String::from(code.suggestion())),
            details: None,
            more: Map::new(),
        }
    }

    /// Reads the error object of a failure envelope. Missing fields are taken from the registry, so that
    /// `recoverable` and `suggestion` are always set for a registered code.
    pub fn from_map(map: Map<String, Value>) -> Self {
        let mut error = Self {
            code: String::new(),
            message: String::new(),
            recoverable: false,
            suggestion: None,
            details: None,
            more: Map::new(),
        };
        let mut recoverable = None;
        for (key, value) in map {
            match (key.as_str(), value) {
                ("code", Value::String(code)) => error.code = code,
                ("message", Value::String(message)) => error.message = message,
                ("recoverable", Value::Bool(given)) => recoverable = Some(given),
                ("suggestion", Value::String(suggestion)) => error.suggestion = Some(suggestion),
                ("details", Value::Object(details)) => error.details = Some(details),
                (_, value) => {
                    error.more.insert(key, value);
                }
            }
        }
        let registered = Code::find(&error.code);
        error.recoverable = recoverable
            .unwrap_or_else(|| registered.is_some_and(|code| code.recoverable() == Recoverable::Yes));
        if error.suggestion.is_none() {
            error.suggestion = registered.map(|code| String::from(code.suggestion()));
        }
        error
    }

    #[must_use]
    pub fn detail(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.details
            .get_or_insert_default()
            .insert(String::from(key), value.into());
        self
    }

    #[must_use]
    pub fn suggest(mut self, suggestion: impl Into<String>) -> Self {
        self.suggestion = Some(suggestion.into());
        self
    }

    pub fn into_map(self) -> Map<String, Value> {
        let mut map = Map::new();
        map.insert(String::from("code"), Value::String(self.code));
        map.insert(String::from("message"), Value::String(self.message));
        map.insert(String::from("recoverable"), Value::Bool(self.recoverable));
        if let Some(suggestion) = self.suggestion {
            map.insert(String::from("suggestion"), Value::String(suggestion));
        }
        if let Some(details) = self.details {
            map.insert(String::from("details"), Value::Object(details));
        }
        map.extend(self.more);
        map
    }
}
