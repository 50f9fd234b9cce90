//! Usage as Gemini counts it: thoughts are counted beside the answer, not in it.

use ir::{Map, Usage};
use serde_json::{Value, json};

use crate::gemini::OWN;

pub(super) fn decode(value: &Value) -> Usage {
    let at = |key: &str| value.get(key).and_then(Value::as_u64);
    let thoughts = at("thoughtsTokenCount");
    let spoken = at("candidatesTokenCount");
    let output = match (spoken, thoughts) {
        (None, None) => None,
        (spoken, thoughts) => Some(spoken.unwrap_or(0).saturating_add(thoughts.unwrap_or(0))),
    };
    Usage {
        input_tokens: at("promptTokenCount"),
        output_tokens: output,
        cache_read_tokens: at("cachedContentTokenCount"),
        reasoning_tokens: thoughts,
        ..Usage::default()
    }
    .with_raw(OWN, value.clone())
}

pub(super) fn encode(usage: &Usage) -> Value {
    if let Some(raw) = usage.raw_in(OWN) {
        return raw.clone();
    }
    let mut map = Map::new();
    let thoughts = usage.reasoning_tokens;
    let spoken = usage
        .output_tokens
        .map(|all| all.saturating_sub(thoughts.unwrap_or(0)));
    for (key, value) in [
        ("promptTokenCount", usage.input_tokens),
        ("cachedContentTokenCount", usage.cache_read_tokens),
        ("candidatesTokenCount", spoken),
        ("thoughtsTokenCount", thoughts),
        ("totalTokenCount", usage.total_tokens()),
    ] {
        if let Some(value) = value {
            map.insert(String::from(key), json!(value));
        }
    }
    Value::Object(map)
}
