//! Usage in Anthropic's format: tokens read from and written to the cache are not part of `input_tokens`, so
//! the total is the sum of the three.

use ir::{Ledger, Map, Usage};
use serde_json::{Value, json};

use crate::anthropic::OWN;
use crate::losses::record_usage_losses;

pub(crate) fn decode(value: &Value) -> Usage {
    let at = |key: &str| value.get(key).and_then(Value::as_u64);
    let read = at("cache_read_input_tokens");
    let write = at("cache_creation_input_tokens");
    let fresh = at("input_tokens");
    let total = fresh.map(|fresh| {
        fresh
            .saturating_add(read.unwrap_or(0))
            .saturating_add(write.unwrap_or(0))
    });
    Usage {
        input_tokens: total,
        output_tokens: at("output_tokens"),
        cache_read_tokens: read,
        cache_write_tokens: write,
        ..Usage::default()
    }
    .with_raw(OWN, value.clone())
}

/// Unknown counts are null, not zero.
pub(super) fn encode(usage: Option<&Usage>) -> Value {
    let Some(usage) = usage else {
        return json!({"input_tokens": null, "output_tokens": null});
    };
    if let Some(raw) = usage.raw_in(OWN) {
        return raw.clone();
    }
    let cached = usage
        .cache_read_tokens
        .unwrap_or(0)
        .saturating_add(usage.cache_write_tokens.unwrap_or(0));
    let fresh = usage.input_tokens.map(|total| total.saturating_sub(cached));
    let mut map = Map::new();
    map.insert(String::from("input_tokens"), json!(fresh));
    if let Some(count) = usage.cache_write_tokens {
        map.insert(String::from("cache_creation_input_tokens"), json!(count));
    }
    if let Some(count) = usage.cache_read_tokens {
        map.insert(String::from("cache_read_input_tokens"), json!(count));
    }
    map.insert(String::from("output_tokens"), json!(usage.output_tokens));
    Value::Object(map)
}

/// Records the counts that this dialect does not support.
pub(super) fn book(usage: &Usage, ledger: &mut Ledger) {
    let wordless = [
        ("reasoning_tokens", usage.reasoning_tokens.is_some()),
        ("input_audio_tokens", usage.input_audio_tokens.is_some()),
        ("output_audio_tokens", usage.output_audio_tokens.is_some()),
        ("cost_usd", usage.cost_usd.is_some()),
    ];
    record_usage_losses(OWN, usage, &wordless, ledger);
}
