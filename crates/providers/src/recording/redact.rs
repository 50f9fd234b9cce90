//! Removes secrets from a recording: every known secret anywhere, and strings that look like keys from error
//! messages, because some servers quote request headers.

use ir::Event;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use crate::redaction::redact_text;

const STRUCK: &str = "[redacted]";

/// Prefixes of keys of known vendors.
const PREFIXES: &[&str] = &["sk-", "pk-", "rk-", "gsk_", "xai-", "AIza", "hf_", "ghp_", "eyJ"];

/// The secrets of this process.
#[derive(Debug, Default)]
pub(super) struct Redactor {
    secrets: Vec<SecretString>,
}

impl Redactor {
    pub(super) fn new(secrets: Vec<SecretString>) -> Self {
        Self { secrets }
    }

    pub(super) fn text(&self, text: &mut String) {
        for secret in &self.secrets {
            redact_text(text, secret.expose_secret(), STRUCK);
        }
    }

    pub(super) fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(map) => map.values_mut().for_each(|value| self.value(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    pub(super) fn event(&self, event: Event) -> Event {
        let event = match event {
            Event::Error { mut error } => {
                error.message = strike_keys(&error.message);
                Event::Error { error }
            }
            event => event,
        };
        if self.secrets.is_empty() {
            return event;
        }
        let Ok(mut value) = serde_json::to_value(&event) else {
            return event;
        };
        self.value(&mut value);
        serde_json::from_value(value).unwrap_or(event)
    }
}

/// Key-like strings: a known prefix, or the text after `Bearer`.
fn strike_keys(message: &str) -> String {
    let mut struck = String::with_capacity(message.len());
    let mut after_bearer = false;
    for piece in message.split_inclusive(|c: char| !(c.is_ascii_alphanumeric() || "-_.+/*".contains(c))) {
        let word = piece.trim_end_matches(|c: char| !(c.is_ascii_alphanumeric() || "-_.+/*".contains(c)));
        let end = piece.get(word.len()..).unwrap_or_default();
        let is_key = word.len() > 8 && PREFIXES.iter().any(|prefix| word.starts_with(prefix));
        struck.push_str(if is_key || (after_bearer && !word.is_empty()) {
            STRUCK
        } else {
            word
        });
        struck.push_str(end);
        after_bearer = word.eq_ignore_ascii_case("bearer") || (after_bearer && word.is_empty());
    }
    struck
}
