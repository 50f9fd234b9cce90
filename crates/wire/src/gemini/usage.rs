//! Usage in Gemini's format: thoughts are counted separately from the response, and tokens from built-in
//! tools separately from the prompt. Counts of zero are omitted, so one of two absent counts is zero.

use ir::{Ledger, Map, Usage};
use serde_json::{Value, json};

use crate::gemini::OWN;
use crate::losses::record_usage_losses;

pub(super) fn decode(value: &Value) -> Usage {
    let at = |key: &str| value.get(key).and_then(Value::as_u64);
    let thoughts = at("thoughtsTokenCount");
    Usage {
        input_tokens: sum(at("promptTokenCount"), at("toolUsePromptTokenCount")),
        output_tokens: sum(at("candidatesTokenCount"), thoughts),
        cache_read_tokens: at("cachedContentTokenCount"),
        reasoning_tokens: thoughts,
        input_audio_tokens: audio(value.get("promptTokensDetails")),
        output_audio_tokens: audio(value.get("candidatesTokensDetails")),
        ..Usage::default()
    }
    .with_raw(OWN, value.clone())
}

pub(super) fn sum(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (None, None) => None,
        (one, other) => Some(one.unwrap_or(0).saturating_add(other.unwrap_or(0))),
    }
}

/// The audio tokens in `[{"modality": "AUDIO", "tokenCount": 5}]`.
fn audio(details: Option<&Value>) -> Option<u64> {
    let mut list = details?.as_array()?.iter();
    list.find(|item| item["modality"] == "AUDIO")?
        .get("tokenCount")?
        .as_u64()
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
    for (key, value) in [
        ("promptTokensDetails", usage.input_audio_tokens),
        ("candidatesTokensDetails", usage.output_audio_tokens),
    ] {
        if let Some(value) = value {
            map.insert(
                String::from(key),
                json!([{"modality": "AUDIO", "tokenCount": value}]),
            );
        }
    }
    Value::Object(map)
}

/// Records the counts that this dialect does not support.
pub(super) fn book(usage: &Usage, ledger: &mut Ledger) {
    let wordless = [
        ("cache_write_tokens", usage.cache_write_tokens.is_some()),
        ("cost_usd", usage.cost_usd.is_some()),
    ];
    record_usage_losses(OWN, usage, &wordless, ledger);
}
