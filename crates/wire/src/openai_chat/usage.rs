//! Usage in OpenAI's format: totals with details.

use ir::{Dialect, Event, Usage};
use serde_json::{Value, json};

use ir::Map;

/// `dialect` is the dialect under which the raw usage is preserved.
pub(crate) fn decode(value: &Value, dialect: Dialect) -> Usage {
    let at = |key: &str| member(value, key).and_then(Value::as_u64);
    let within = |object: Option<&Value>, key: &str| member(object?, key)?.as_u64();
    let (prompt, input) = (
        member(value, "prompt_tokens_details"),
        member(value, "input_tokens_details"),
    );
    let (completion, output) = (
        member(value, "completion_tokens_details"),
        member(value, "output_tokens_details"),
    );
    let of_input = |key: &str| within(prompt, key).or_else(|| within(input, key));
    let of_output = |key: &str| within(completion, key).or_else(|| within(output, key));
    let usage = Usage {
        input_tokens: at("prompt_tokens").or_else(|| at("input_tokens")),
        output_tokens: at("completion_tokens").or_else(|| at("output_tokens")),
        cache_read_tokens: of_input("cached_tokens").or_else(|| at("prompt_cache_hit_tokens")),
        cache_write_tokens: of_input("cache_write_tokens"),
        reasoning_tokens: of_output("reasoning_tokens"),
        input_audio_tokens: within(prompt, "audio_tokens"),
        output_audio_tokens: within(completion, "audio_tokens"),
        cost_usd: member(value, "cost").and_then(|cost| serde_json::from_value(cost.clone()).ok()),
        estimated: false,
        raw: None,
    };
    usage.with_raw(dialect, value.clone())
}

/// The usage that a chunk or an error reports; `null` reports none.
pub(crate) fn reported(value: Option<&Value>, dialect: Dialect) -> Option<Event> {
    let value = value.filter(|value| value.is_object())?;
    Some(Event::Usage {
        usage: decode(value, dialect),
    })
}

/// Usage objects are small: a linear scan is cheaper than hashing the key.
fn member<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    let mut members = value.as_object()?.iter();
    members.find(|(own, _)| *own == key).map(|(_, value)| value)
}

/// The field names of the two OpenAI APIs; their structure is the same.
pub(crate) struct UsageFields {
    pub(crate) dialect: Dialect,
    pub(crate) input: &'static str,
    pub(crate) output: &'static str,
}

pub(crate) const CHAT: UsageFields = UsageFields {
    dialect: Dialect::OpenaiChat,
    input: "prompt_tokens",
    output: "completion_tokens",
};
pub(crate) const RESPONSES: UsageFields = UsageFields {
    dialect: Dialect::OpenaiResponses,
    input: "input_tokens",
    output: "output_tokens",
};

pub(crate) fn encode(usage: &Usage, words: &UsageFields) -> Value {
    if let Some(raw) = usage.raw_in(words.dialect) {
        return raw.clone();
    }
    let mut map = Map::new();
    let mut put = |key: &str, value: Value| {
        map.insert(String::from(key), value);
    };
    put(words.input, json!(usage.input_tokens));
    put(words.output, json!(usage.output_tokens));
    put("total_tokens", json!(usage.total_tokens()));
    let details = |pairs: &[(&str, Option<u64>)]| {
        let known = pairs.iter().filter(|(_, value)| value.is_some());
        known
            .map(|(key, value)| (String::from(*key), json!(value)))
            .collect::<Map>()
    };
    let input = details(&[
        ("cached_tokens", usage.cache_read_tokens),
        ("cache_write_tokens", usage.cache_write_tokens),
        ("audio_tokens", usage.input_audio_tokens),
    ]);
    let output = details(&[
        ("reasoning_tokens", usage.reasoning_tokens),
        ("audio_tokens", usage.output_audio_tokens),
    ]);
    for (word, part) in [(words.input, input), (words.output, output)] {
        if !part.is_empty() {
            put(&format!("{word}_details"), Value::Object(part));
        }
    }
    if let Some(cost) = &usage.cost_usd {
        put("cost", json!(cost));
    }
    Value::Object(map)
}
