//! Usage in Ollama's format: prompt and response tokens, and durations. Reasoning is counted as part of the
//! response; cached prompt tokens are not counted.

use ir::{Fields, Ledger, Map, Usage};
use serde_json::{Value, json};

use crate::losses::record_usage_losses;
use crate::ollama::OWN;

const KEYS: [&str; 6] = [
    "total_duration",
    "load_duration",
    "prompt_eval_count",
    "prompt_eval_duration",
    "eval_count",
    "eval_duration",
];

/// Removes the usage from the fields of a response; `None` if there is none.
pub(crate) fn take(fields: &mut Fields) -> Option<Usage> {
    let mut raw = Map::new();
    for key in KEYS {
        if let Some(value) = fields.take(key) {
            raw.insert(String::from(key), value);
        }
    }
    let at = |key: &str| raw.get(key).and_then(Value::as_u64);
    let usage = Usage {
        input_tokens: at("prompt_eval_count"),
        output_tokens: at("eval_count"),
        ..Usage::default()
    };
    (!raw.is_empty()).then(|| usage.with_raw(OWN, Value::Object(raw)))
}

/// Unknown counts are omitted.
pub(super) fn put(usage: &Usage, map: &mut Map) {
    if let Some(Value::Object(raw)) = usage.raw_in(OWN) {
        return map.extend(raw.clone());
    }
    for (key, value) in [
        ("prompt_eval_count", usage.input_tokens),
        ("eval_count", usage.output_tokens),
    ] {
        if let Some(value) = value {
            map.insert(String::from(key), json!(value));
        }
    }
}

/// Records the counts that this dialect does not support.
pub(super) fn book(usage: &Usage, ledger: &mut Ledger) {
    let wordless = [
        ("cache_read_tokens", usage.cache_read_tokens.is_some()),
        ("cache_write_tokens", usage.cache_write_tokens.is_some()),
        ("reasoning_tokens", usage.reasoning_tokens.is_some()),
        ("input_audio_tokens", usage.input_audio_tokens.is_some()),
        ("output_audio_tokens", usage.output_audio_tokens.is_some()),
        ("cost_usd", usage.cost_usd.is_some()),
    ];
    record_usage_losses(OWN, usage, &wordless, ledger);
}
