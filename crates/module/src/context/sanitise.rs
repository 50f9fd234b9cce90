//! Context comes from stores and sessions and may contain secrets. Values under names of secrets are
//! redacted, and very long strings are truncated.

use serde_json::Value;

use crate::limits;

const REDACTED: &str = "[redacted]";

pub(super) fn sanitise(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(cut(text)),
        Value::Array(items) => items.into_iter().map(sanitise).collect(),
        Value::Object(map) => {
            let clean = map.into_iter().map(|(key, value)| {
                let value = match is_secret(&key) {
                    true => Value::from(REDACTED),
                    false => sanitise(value),
                };
                (key, value)
            });
            Value::Object(clean.collect())
        }
        value => value,
    }
}

fn cut(text: String) -> String {
    match text.char_indices().nth(limits::CONTEXT_TEXT_CHARS_MAX) {
        None => text,
        Some((at, _)) => {
            let mut text = text;
            text.truncate(at);
            text.push('…');
            text
        }
    }
}

/// `password`, `client_secret`, `apiKey`; but not `key_points` or `token_count`, where `key` and `token` are
/// not the last word.
fn is_secret(key: &str) -> bool {
    let words = words(key);
    let any = [
        "password",
        "passwords",
        "passwd",
        "passphrase",
        "secret",
        "secrets",
        "credential",
        "credentials",
    ];
    let last = ["token", "tokens", "key", "keys", "apikey"];
    words.iter().any(|word| any.contains(&word.as_str()))
        || words.last().is_some_and(|word| last.contains(&word.as_str()))
}

/// The words of a name in snake, kebab or camel case.
fn words(key: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in key.chars() {
        let border = !c.is_alphanumeric() || (c.is_uppercase() && was_lower);
        if border && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if c.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase() || c.is_ascii_digit();
    }
    words.retain(|word| !word.is_empty());
    words
}
