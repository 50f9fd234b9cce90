//! Usage as Ollama counts it: what was read and what was written, beside how long each took. Reasoning is
//! part of what was written and is not told apart; a prompt that was cached is not counted at all.

use ir::{Fields, Ledger, Map, Usage};
use serde_json::{Value, json};

use crate::ollama::OWN;
use crate::losses::record_usage_losses;

const KEYS: [&str; 6] = [
    "total_duration",
    "load_duration",
    "prompt_eval_count",
    "prompt_eval_duration",
    "eval_count",
    "eval_duration",
];

/// Takes the account out of the fields of an answer; `None` if there is none.
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

/// What is not known is left out.
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

/// Books what an account in this dialect leaves out.
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
