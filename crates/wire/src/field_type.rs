//! Types of the known request fields, per dialect. A decoder treats a field of another type as unknown and
//! preserves it; the gateway therefore validates requests with this table first, so that client errors are
//! rejected. Values, and fields that are not listed, are validated by the back-end.

use ir::{Dialect, Map};
use serde_json::Value;

use self::Kind::{Flag, Integer, List, Number, Object, Text, Texts};

/// An accepted type of a field. A null field counts as absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    Number,
    /// A number without a fraction, of either sign: some servers take -1 for no limit.
    Integer,
    Flag,
    List,
    /// A list of strings.
    Texts,
    Object,
}

impl Kind {
    fn fits(self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string(),
            Self::Number => value.is_number(),
            Self::Integer => value.is_i64() || value.is_u64(),
            Self::Flag => value.is_boolean(),
            Self::List => value.is_array(),
            Self::Texts => value
                .as_array()
                .is_some_and(|list| list.iter().all(Value::is_string)),
            Self::Object => value.is_object(),
        }
    }

    fn description(self) -> &'static str {
        match self {
            Self::Text => "a string",
            Self::Number => "a number",
            Self::Integer => "an integer",
            Self::Flag => "true or false",
            Self::List => "a list",
            Self::Texts => "a list of strings",
            Self::Object => "an object",
        }
    }
}

/// A field, by its name or its path through objects, and its accepted types.
pub type Field = (&'static str, &'static [Kind]);

const OPENAI_CHAT: &[Field] = &[
    ("messages", &[List]),
    ("tools", &[List]),
    ("tool_choice", &[Text, Object]),
    ("parallel_tool_calls", &[Flag]),
    ("functions", &[List]),
    ("function_call", &[Text, Object]),
    ("temperature", &[Number]),
    ("top_p", &[Number]),
    ("top_k", &[Number]),
    ("seed", &[Number]),
    ("presence_penalty", &[Number]),
    ("frequency_penalty", &[Number]),
    ("logit_bias", &[Object]),
    ("n", &[Integer]),
    ("logprobs", &[Flag]),
    ("top_logprobs", &[Integer]),
    ("max_completion_tokens", &[Integer]),
    ("max_tokens", &[Integer]),
    ("stop", &[Text, Texts]),
    ("stream", &[Flag]),
    ("stream_options", &[Object]),
    ("stream_options.include_usage", &[Flag]),
    ("response_format", &[Object]),
    ("response_format.type", &[Text]),
    ("response_format.json_schema", &[Object]),
    ("reasoning_effort", &[Text]),
    ("modalities", &[Texts]),
    ("audio", &[Object]),
    ("user", &[Text]),
    ("metadata", &[Object]),
];

const OPENAI_RESPONSES: &[Field] = &[
    ("input", &[Text, List]),
    ("instructions", &[Text]),
    ("tools", &[List]),
    ("tool_choice", &[Text, Object]),
    ("parallel_tool_calls", &[Flag]),
    ("temperature", &[Number]),
    ("top_p", &[Number]),
    ("top_logprobs", &[Integer]),
    ("max_output_tokens", &[Integer]),
    ("max_tool_calls", &[Integer]),
    ("stream", &[Flag]),
    ("stream_options", &[Object]),
    ("reasoning", &[Object]),
    ("reasoning.effort", &[Text]),
    ("reasoning.summary", &[Text]),
    ("text", &[Object]),
    ("text.format", &[Object]),
    ("include", &[Texts]),
    ("store", &[Flag]),
    ("user", &[Text]),
    ("metadata", &[Object]),
];

const ANTHROPIC: &[Field] = &[
    ("messages", &[List]),
    ("system", &[Text, List]),
    ("tools", &[List]),
    ("tool_choice", &[Object]),
    ("tool_choice.type", &[Text]),
    ("tool_choice.name", &[Text]),
    ("tool_choice.disable_parallel_tool_use", &[Flag]),
    ("max_tokens", &[Integer]),
    ("temperature", &[Number]),
    ("top_p", &[Number]),
    ("top_k", &[Number]),
    ("stop_sequences", &[Texts]),
    ("stream", &[Flag]),
    ("thinking", &[Object]),
    ("thinking.type", &[Text]),
    ("thinking.budget_tokens", &[Integer]),
    ("output_config", &[Object]),
    ("output_config.effort", &[Text]),
    ("output_config.format", &[Object]),
    ("output_format", &[Object]),
    ("metadata", &[Object]),
    ("metadata.user_id", &[Text]),
];

const CANONICAL: &[Field] = &[
    ("payload.messages", &[List]),
    ("payload.tools", &[List]),
    ("payload.tool_choice", &[Text, Object]),
    ("payload.parallel_tool_calls", &[Flag]),
    ("payload.response_format", &[Object]),
    ("payload.reasoning", &[Object]),
    ("payload.modalities", &[Texts]),
    ("payload.user", &[Text]),
    ("payload.metadata", &[Object]),
    ("payload.generation", &[Object]),
    ("payload.generation.temperature", &[Number]),
    ("payload.generation.top_p", &[Number]),
    ("payload.generation.top_k", &[Number]),
    ("payload.generation.seed", &[Number]),
    ("payload.generation.presence_penalty", &[Number]),
    ("payload.generation.frequency_penalty", &[Number]),
    ("payload.generation.max_tokens", &[Integer]),
    ("payload.generation.n", &[Integer]),
    ("payload.generation.top_logprobs", &[Integer]),
    ("payload.generation.logprobs", &[Flag]),
    ("payload.generation.stream", &[Flag]),
    ("payload.generation.stop", &[Texts]),
];

/// The known fields of a chat request; empty for a dialect that the gateway does not accept from clients.
pub fn fields(dialect: Dialect) -> &'static [Field] {
    match dialect {
        Dialect::OpenaiChat => OPENAI_CHAT,
        Dialect::OpenaiResponses => OPENAI_RESPONSES,
        Dialect::Anthropic => ANTHROPIC,
        Dialect::Canonical => CANONICAL,
        _ => &[],
    }
}

/// A field whose value has a type that is not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeMismatch {
    pub field: &'static str,
    pub message: String,
}

/// The first field of a request that has a wrong type.
pub fn find_mismatch(dialect: Dialect, body: &Map) -> Option<TypeMismatch> {
    fields(dialect).iter().find_map(|(field, kinds)| {
        let mut steps = field.split('.');
        let first = body.get(steps.next()?)?;
        let value = steps.try_fold(first, |value, step| value.get(step))?;
        if value.is_null() || kinds.iter().any(|kind| kind.fits(value)) {
            return None;
        }
        let accepted: Vec<&str> = kinds.iter().map(|kind| kind.description()).collect();
        let message = format!(
            "`{field}` must be {}, and is {}",
            accepted.join(" or "),
            name_of(value)
        );
        Some(TypeMismatch { field, message })
    })
}

fn name_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(number) if number.is_f64() => "a number with a fraction",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use ir::Dialect;
    use serde_json::{Map, Value, json};

    use super::{Kind, fields, find_mismatch};

    const DIALECTS: [Dialect; 4] = [
        Dialect::OpenaiChat,
        Dialect::OpenaiResponses,
        Dialect::Anthropic,
        Dialect::Canonical,
    ];

    /// One value of every type, with the kinds that accept it.
    fn values() -> Vec<(Value, Vec<Kind>)> {
        vec![
            (json!("hot"), vec![Kind::Text]),
            (json!(0.5), vec![Kind::Number]),
            (json!(-1), vec![Kind::Number, Kind::Integer]),
            (json!(true), vec![Kind::Flag]),
            (json!(["a"]), vec![Kind::List, Kind::Texts]),
            (json!([1]), vec![Kind::List]),
            (json!({}), vec![Kind::Object]),
        ]
    }

    /// A body with only this field, inside the objects of its path.
    fn body(field: &str, value: &Value) -> Map<String, Value> {
        let whole = field
            .rsplit('.')
            .fold(value.clone(), |inner, step| json!({step: inner}));
        whole.as_object().unwrap().clone()
    }

    #[test]
    fn known_fields_accept_only_their_types() {
        for dialect in DIALECTS {
            assert!(fields(dialect).len() > 10);
            for (field, kinds) in fields(dialect) {
                for (value, fitting) in values() {
                    let found = find_mismatch(dialect, &body(field, &value));
                    match fitting.iter().any(|kind| kinds.contains(kind)) {
                        true => assert_eq!(found, None, "{dialect} {field} {value}"),
                        false => {
                            let found = found.unwrap_or_else(|| panic!("{dialect} {field} {value}"));
                            assert_eq!(found.field, *field);
                            assert!(found.message.starts_with(&format!("`{field}` must be ")));
                        }
                    }
                }
                assert_eq!(find_mismatch(dialect, &body(field, &Value::Null)), None);
            }
        }
    }

    #[test]
    fn unknown_fields_are_ignored() {
        for dialect in DIALECTS {
            for (value, _) in values() {
                assert_eq!(find_mismatch(dialect, &body("a_field_of_tomorrow", &value)), None);
            }
        }
    }
}
