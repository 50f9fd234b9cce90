//! Values as YAML text: plain scalars where they are safe, quoted scalars otherwise.

use serde_json::Value;

use crate::document::parse_yaml;

/// `key: value` on as many lines as it takes, each indented and ended.
pub(super) fn block(name: &str, value: &Value, indent: &str) -> String {
    let name = key(name);
    match value {
        Value::Object(map) if !map.is_empty() => {
            let deeper = format!("{indent}  ");
            let lines: String = map
                .iter()
                .map(|(name, value)| block(name, value, &deeper))
                .collect();
            format!("{indent}{name}:\n{lines}")
        }
        Value::Array(list)
            if list
                .iter()
                .any(|item| item.as_str().is_some_and(|text| text.contains(' '))) =>
        {
            let lines: String = list
                .iter()
                .map(|item| format!("{indent}  - {}\n", flow(item)))
                .collect();
            format!("{indent}{name}:\n{lines}")
        }
        value => format!("{indent}{name}: {}\n", flow(value)),
    }
}

/// A value on one line.
pub(super) fn flow(value: &Value) -> String {
    match value {
        Value::Array(list) => {
            let items: Vec<_> = list.iter().map(flow).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(map) => {
            let entries: Vec<_> = map
                .iter()
                .map(|(name, value)| format!("{}: {}", key(name), flow(value)))
                .collect();
            format!("{{{}}}", entries.join(", "))
        }
        Value::String(text) => scalar(text),
        other => other.to_string(),
    }
}

pub(super) fn key(name: &str) -> String {
    scalar(name)
}

/// A string as a plain scalar if it round-trips even inside a flow collection, else as a JSON string, which
/// is valid YAML.
fn scalar(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ' ' | '>' | '#');
    let safe = text.chars().all(plain)
        && !text.contains(" #")
        && text
            .chars()
            .next()
            .is_some_and(|c| c.is_alphanumeric() || matches!(c, '.' | '/' | '_'))
        && !text.ends_with(' ')
        && matches!(parse_yaml(text), Ok(Value::String(same)) if same == text);
    if safe {
        String::from(text)
    } else {
        Value::String(String::from(text)).to_string()
    }
}
