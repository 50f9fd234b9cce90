//! Checks whether a JSON value is an envelope by its shape alone: no module, no repair. Conformance vectors
//! run against it, and every emitted envelope must pass it. The checks are written by hand, so that they are
//! cheap compared with parsing; a test compares them with an equivalent schema.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::meta::Risk;
use crate::code::Code;
use crate::limits;

/// One of the two published envelope profiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// v2.2 and v2.5: closed at the top, no `version`; keys that begin with `_` are annotations.
    #[default]
    Cognitive,
    /// The same with `version: "2.2"` as a required key.
    Cep22,
}

impl Profile {
    /// The profile with the name `2.2`, `2.5` or `cep-2.2`.
    pub fn find(text: &str) -> Option<Self> {
        match text {
            "2.2" | "2.5" | "v2.2" | "v2.5" => Some(Self::Cognitive),
            "cep-2.2" => Some(Self::Cep22),
            _ => None,
        }
    }
}

/// One reason why a value is not an envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapeViolation {
    /// JSON pointer of the invalid value, or of the object that lacks a key.
    pub pointer: String,
    /// The JSON Schema keyword that states the same rule.
    pub keyword: Cow<'static, str>,
    pub message: String,
    pub code: Code,
}

impl ShapeViolation {
    pub(crate) fn new(pointer: impl Into<String>, keyword: &'static str, message: impl Into<String>) -> Self {
        Self {
            pointer: pointer.into(),
            keyword: Cow::Borrowed(keyword),
            message: message.into(),
            code: Code::E3001,
        }
    }

    fn missing(pointer: impl Into<String>, key: &str) -> Self {
        Self::new(pointer, "required", format!("`{key}` is missing"))
    }

    fn wrong_type(pointer: impl Into<String>, wanted: &str, found: &Value) -> Self {
        let message = format!("must be {wanted}, not {}", kind(found));
        Self::new(pointer, "type", message)
    }
}

/// All reasons why `value` is not an envelope; empty if it is one.
pub fn check_structure(value: &Value, profile: Profile) -> Vec<ShapeViolation> {
    let mut found = Vec::new();
    let Value::Object(map) = value else {
        found.push(ShapeViolation::wrong_type("", "an object", value));
        return found;
    };
    check_version(map, profile, &mut found);
    match map.get("ok") {
        Some(Value::Bool(true)) => check_success(map, &mut found),
        Some(Value::Bool(false)) => check_failure(map, &mut found),
        Some(other) => found.push(ShapeViolation::wrong_type("/ok", "true or false", other)),
        None => found.push(ShapeViolation::missing("", "ok")),
    }
    match map.get("meta") {
        Some(Value::Object(meta)) => check_meta(meta, &mut found),
        Some(other) => found.push(ShapeViolation::wrong_type("/meta", "an object", other)),
        None => found.push(ShapeViolation::missing("", "meta")),
    }
    found
}

fn check_version(map: &Map<String, Value>, profile: Profile, found: &mut Vec<ShapeViolation>) {
    match (profile, map.get("version")) {
        (Profile::Cognitive, None) => {}
        (Profile::Cognitive, Some(_)) => {
            let message = "`version` belongs to the cep-2.2 profile only";
            found.push(ShapeViolation::new("/version", "additionalProperties", message));
        }
        (Profile::Cep22, Some(Value::String(version))) if version == "2.2" => {}
        (Profile::Cep22, Some(_)) => {
            found.push(ShapeViolation::new(
                "/version",
                "const",
                "`version` must be \"2.2\"",
            ));
        }
        (Profile::Cep22, None) => found.push(ShapeViolation::missing("", "version")),
    }
}

fn check_success(map: &Map<String, Value>, found: &mut Vec<ShapeViolation>) {
    check_closed(map, &["ok", "version", "meta", "data"], found);
    match map.get("data") {
        Some(Value::Object(data)) => {
            check_rationale(data, found);
            check_extensions(data, found);
        }
        Some(other) => found.push(ShapeViolation::wrong_type("/data", "an object", other)),
        None => found.push(ShapeViolation::missing("", "data")),
    }
}

fn check_failure(map: &Map<String, Value>, found: &mut Vec<ShapeViolation>) {
    check_closed(map, &["ok", "version", "meta", "error", "partial_data"], found);
    match map.get("error") {
        Some(Value::Object(error)) => check_error(error, found),
        Some(other) => found.push(ShapeViolation::wrong_type("/error", "an object", other)),
        None => found.push(ShapeViolation::missing("", "error")),
    }
    match map.get("partial_data") {
        None | Some(Value::Object(_)) => {}
        Some(other) => found.push(ShapeViolation::wrong_type("/partial_data", "an object", other)),
    }
}

/// The top level allows no other keys except annotations.
pub(super) fn check_closed(map: &Map<String, Value>, known: &[&str], found: &mut Vec<ShapeViolation>) {
    for key in map.keys() {
        if !known.contains(&key.as_str()) && !key.starts_with('_') {
            let message = format!("`{key}` is not allowed here: an envelope is closed at the top level");
            found.push(ShapeViolation::new(
                format!("/{}", escape(key)),
                "additionalProperties",
                message,
            ));
        }
    }
}

fn check_meta(meta: &Map<String, Value>, found: &mut Vec<ShapeViolation>) {
    match meta.get("confidence") {
        Some(Value::Number(number)) => {
            if !number
                .as_f64()
                .is_some_and(|number| (0.0..=1.0).contains(&number))
            {
                let message = format!("must be between 0 and 1, not {number}");
                found.push(ShapeViolation::new("/meta/confidence", "maximum", message));
            }
        }
        Some(other) => found.push(ShapeViolation::wrong_type("/meta/confidence", "a number", other)),
        None => found.push(ShapeViolation::missing("/meta", "confidence")),
    }
    match meta.get("risk") {
        Some(Value::String(risk)) if Risk::find(risk).is_some() => {}
        Some(Value::String(_)) => {
            let message = "must be one of none, low, medium, high";
            found.push(ShapeViolation::new("/meta/risk", "enum", message));
        }
        Some(other) => found.push(ShapeViolation::wrong_type("/meta/risk", "a string", other)),
        None => found.push(ShapeViolation::missing("/meta", "risk")),
    }
    match meta.get("explain") {
        Some(Value::String(explain)) => {
            if exceeds(explain, limits::EXPLAIN_CHARS_MAX) {
                let message = format!("must not exceed {} characters", limits::EXPLAIN_CHARS_MAX);
                found.push(ShapeViolation::new("/meta/explain", "maxLength", message));
            }
        }
        Some(other) => found.push(ShapeViolation::wrong_type("/meta/explain", "a string", other)),
        None => found.push(ShapeViolation::missing("/meta", "explain")),
    }
    for (key, pointer) in [("trace_id", "/meta/trace_id"), ("model", "/meta/model")] {
        if let Some(other) = meta.get(key).filter(|value| !value.is_string()) {
            found.push(ShapeViolation::wrong_type(pointer, "a string", other));
        }
    }
    if let Some(latency) = meta.get("latency_ms") {
        match latency.as_f64() {
            None => found.push(ShapeViolation::wrong_type(
                "/meta/latency_ms",
                "a number",
                latency,
            )),
            Some(number) if number < 0.0 => {
                let message = "must not be negative";
                found.push(ShapeViolation::new("/meta/latency_ms", "minimum", message));
            }
            Some(_) => {}
        }
    }
}

fn check_rationale(data: &Map<String, Value>, found: &mut Vec<ShapeViolation>) {
    match data.get("rationale") {
        Some(Value::String(_)) => {}
        Some(other) => found.push(ShapeViolation::wrong_type("/data/rationale", "a string", other)),
        None => found.push(ShapeViolation::missing("/data", "rationale")),
    }
}

/// The overflow container: no other keys, and at most [`limits::INSIGHTS_MAX`] insights in any module.
pub(super) fn check_extensions(data: &Map<String, Value>, found: &mut Vec<ShapeViolation>) {
    let extensions = match data.get("extensions") {
        None => return,
        Some(Value::Object(extensions)) => extensions,
        Some(other) => {
            found.push(ShapeViolation::wrong_type("/data/extensions", "an object", other));
            return;
        }
    };
    for key in extensions.keys().filter(|key| *key != "insights") {
        let message = format!("`{key}` is not allowed here: extensions contains only `insights`");
        let pointer = format!("/data/extensions/{}", escape(key));
        found.push(ShapeViolation::new(pointer, "additionalProperties", message));
    }
    match extensions.get("insights") {
        None => {}
        Some(Value::Array(insights)) => {
            if insights.len() as u64 > limits::INSIGHTS_MAX {
                let message = format!(
                    "contains {} insights, at most {} are allowed",
                    insights.len(),
                    limits::INSIGHTS_MAX
                );
                found.push(ShapeViolation::new(
                    "/data/extensions/insights",
                    "maxItems",
                    message,
                ));
            }
            for (index, insight) in insights.iter().enumerate() {
                check_insight(insight, index, found);
            }
        }
        Some(other) => {
            found.push(ShapeViolation::wrong_type(
                "/data/extensions/insights",
                "an array",
                other,
            ));
        }
    }
}

fn check_insight(insight: &Value, index: usize, found: &mut Vec<ShapeViolation>) {
    let at = || format!("/data/extensions/insights/{index}");
    let Value::Object(insight) = insight else {
        found.push(ShapeViolation::wrong_type(at(), "an object", insight));
        return;
    };
    for key in ["text", "suggested_mapping"] {
        if !insight.contains_key(key) {
            found.push(ShapeViolation::missing(at(), key));
        }
    }
    for (key, value) in insight {
        let pointer = || format!("{}/{}", at(), escape(key));
        if !matches!(key.as_str(), "text" | "suggested_mapping" | "evidence") {
            let message = format!("`{key}` is not allowed in an insight");
            found.push(ShapeViolation::new(pointer(), "additionalProperties", message));
        } else if !value.is_string() {
            found.push(ShapeViolation::wrong_type(pointer(), "a string", value));
        }
    }
}

pub(super) fn check_error(error: &Map<String, Value>, found: &mut Vec<ShapeViolation>) {
    for (key, pointer) in [("code", "/error/code"), ("message", "/error/message")] {
        match error.get(key) {
            Some(Value::String(_)) => {}
            Some(other) => found.push(ShapeViolation::wrong_type(pointer, "a string", other)),
            None => found.push(ShapeViolation::missing("/error", key)),
        }
    }
    if let Some(other) = error.get("recoverable").filter(|value| !value.is_boolean()) {
        found.push(ShapeViolation::wrong_type(
            "/error/recoverable",
            "true or false",
            other,
        ));
    }
    if let Some(other) = error.get("suggestion").filter(|value| !value.is_string()) {
        found.push(ShapeViolation::wrong_type("/error/suggestion", "a string", other));
    }
}

/// Whether `text` has more than `max` code points. Short texts are decided without counting.
pub(super) fn exceeds(text: &str, max: usize) -> bool {
    text.len() > max && text.chars().nth(max).is_some()
}

/// A key escaped for a JSON pointer.
pub(super) fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// The name of a value's type for messages.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
