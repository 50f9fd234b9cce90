//! Validator errors in plain words: the value, the problem, and the expected value.

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, ValidationError};
use serde_json::Value;

use crate::diagnostic::nearest;
use crate::document::dotted;

/// Longest value quoted in a message, in characters.
const SHOWN_CHARS_MAX: usize = 40;

pub(crate) struct Violation {
    /// Pointer into the checked value.
    pub(crate) pointer: String,
    /// Whether the problem is in the key and not in its value.
    pub(crate) at_key: bool,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Violation {
    pub(crate) fn of(error: &ValidationError<'_>) -> Self {
        let pointer = error.instance_path().to_string();
        let name = name(&pointer);
        let (message, hint) = describe(error, &name);
        Self {
            at_key: matches!(
                error.kind(),
                ValidationErrorKind::Required { .. } | ValidationErrorKind::AdditionalProperties { .. }
            ),
            pointer,
            message,
            hint,
        }
    }
}

/// The name of a value in a message.
fn name(pointer: &str) -> String {
    if pointer.is_empty() {
        String::from("the value")
    } else {
        format!("`{}`", dotted(pointer))
    }
}

fn describe(error: &ValidationError<'_>, name: &str) -> (String, Option<String>) {
    let instance = error.instance().as_ref();
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            let key = property.as_str().unwrap_or_default();
            let place = if error.instance_path().as_str().is_empty() {
                String::new()
            } else {
                format!(" in {name}")
            };
            let near = instance
                .as_object()
                .and_then(|map| nearest(key, map.keys().map(String::as_str)));
            let hint = near.map(|near| format!("is `{near}` meant to be `{key}`?"));
            (format!("`{key}` is missing{place}"), hint)
        }
        ValidationErrorKind::Type { kind } => {
            let wanted = expected_type(kind);
            (
                format!("{name} must be {wanted}, not {}", type_of(instance)),
                type_hint(kind, instance),
            )
        }
        ValidationErrorKind::Enum { options } => {
            let options: Vec<&Value> = options
                .as_array()
                .map(|list| list.iter().collect())
                .unwrap_or_default();
            (
                format!("{name} cannot be {}", quoted(instance)),
                Some(enum_hint(instance, &options)),
            )
        }
        ValidationErrorKind::Constant { expected_value } => {
            (format!("{name} must be {}", quoted(expected_value)), None)
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let keys: Vec<String> = unexpected.iter().map(|key| format!("`{key}`")).collect();
            (format!("{name} does not allow {}", keys.join(", ")), None)
        }
        ValidationErrorKind::Pattern { pattern } => (
            format!("{name} is {}, which does not match `{pattern}`", quoted(instance)),
            None,
        ),
        ValidationErrorKind::FalseSchema => (format!("{name} is not allowed here"), None),
        ValidationErrorKind::UniqueItems => (format!("{name} contains the same item twice"), None),
        ValidationErrorKind::OneOfNotValid { context } | ValidationErrorKind::AnyOf { context } => (
            format!("{name} matches none of its {} forms", context.len()),
            branch_hint(context),
        ),
        ValidationErrorKind::OneOfMultipleValid { .. } => {
            (format!("{name} matches more than one of its forms"), None)
        }
        kind => (format!("{name} {}", limit(kind, instance)), None),
    }
}

/// Limit violations, which share one form.
fn limit(kind: &ValidationErrorKind, instance: &Value) -> String {
    let value = quoted(instance);
    match kind {
        ValidationErrorKind::Maximum { limit } => format!("is {value}; the maximum is {limit}"),
        ValidationErrorKind::Minimum { limit } => format!("is {value}; the minimum is {limit}"),
        ValidationErrorKind::ExclusiveMaximum { limit } => format!("is {value}; it must be below {limit}"),
        ValidationErrorKind::ExclusiveMinimum { limit } => format!("is {value}; it must be above {limit}"),
        ValidationErrorKind::MaxLength { limit } => {
            let actual = instance.as_str().map_or(0, |text| text.chars().count());
            format!("has {actual} characters; the maximum is {limit}")
        }
        ValidationErrorKind::MinLength { limit: 1 } => String::from("must not be empty"),
        ValidationErrorKind::MinLength { limit } => format!("has fewer than {limit} characters"),
        ValidationErrorKind::MaxItems { limit } => format!("has too many items; the maximum is {limit}"),
        ValidationErrorKind::MinItems { limit } => format!("has too few items; the minimum is {limit}"),
        ValidationErrorKind::Format { format } => format!("is {value}, which is not a valid {format}"),
        other => format!("violates the rule `{}`", other.keyword()),
    }
}

fn type_word(kind: JsonType) -> &'static str {
    match kind {
        JsonType::Array => "a list",
        JsonType::Boolean => "true or false",
        JsonType::Integer => "an integer",
        JsonType::Null => "null",
        JsonType::Number => "a number",
        JsonType::Object => "a mapping",
        JsonType::String => "a string",
    }
}

fn expected_type(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(kind) => String::from(type_word(*kind)),
        TypeKind::Multiple(kinds) => {
            let words: Vec<&str> = kinds.iter().map(type_word).collect();
            words.join(" or ")
        }
    }
}

pub(crate) fn type_of(value: &Value) -> String {
    match value {
        Value::Null => String::from("empty"),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => format!("the number {number}"),
        Value::String(_) => format!("the string {}", quoted(value)),
        Value::Array(_) => String::from("a list"),
        Value::Object(_) => String::from("a mapping"),
    }
}

fn type_hint(kind: &TypeKind, instance: &Value) -> Option<String> {
    let TypeKind::Single(kind) = kind else { return None };
    match (kind, instance) {
        (JsonType::String, Value::Number(number)) => Some(format!("quote it: \"{number}\"")),
        (JsonType::String, Value::Bool(flag)) => Some(format!("quote it: \"{flag}\"")),
        (JsonType::Boolean, Value::String(text)) => match text.to_ascii_lowercase().as_str() {
            "yes" | "on" | "true" | "y" => Some(String::from("write `true`")),
            "no" | "off" | "false" | "n" => Some(String::from("write `false`")),
            _ => None,
        },
        (JsonType::Array, Value::String(_)) => Some(String::from("write it as a list: `[...]`")),
        (JsonType::Integer | JsonType::Number, Value::String(text)) if text.parse::<f64>().is_ok() => {
            Some(String::from("remove the quotes"))
        }
        _ => None,
    }
}

fn enum_hint(instance: &Value, options: &[&Value]) -> String {
    let texts: Vec<&str> = options.iter().filter_map(|option| option.as_str()).collect();
    if let Some(near) = instance
        .as_str()
        .and_then(|word| nearest(word, texts.iter().copied()))
    {
        return format!("did you mean `{near}`?");
    }
    let all: Vec<String> = options.iter().take(12).map(|option| quoted(option)).collect();
    format!("use one of {}", all.join(", "))
}

/// The first error of the form with the fewest errors.
fn branch_hint(context: &[Vec<ValidationError<'static>>]) -> Option<String> {
    let nearest = context
        .iter()
        .filter(|errors| !errors.is_empty())
        .min_by_key(|errors| errors.len())?;
    let first = nearest.first()?;
    let (message, _) = describe(first, &name(&first.instance_path().to_string()));
    Some(format!("closest form: {message}"))
}

/// A value quoted in a message.
pub(crate) fn quoted(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    };
    let mut short: String = text.chars().take(SHOWN_CHARS_MAX).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    format!("`{}`", short.replace(['\n', '\r'], " "))
}
