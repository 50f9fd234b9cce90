//! Generators of responses of every kind, for property tests.

use ir::event::Warning;
use ir::media::Base64;
use ir::{
    ChatResponse, Dialect, FinishReason, Media, MediaSource, Part, PartBody, Reasoning, ReasoningForm,
    ReasoningOrigin, ToolCall, Usage,
};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A response as `dialect` could return it: reasoning has this dialect as its origin.
pub(crate) fn answer(dialect: Dialect) -> impl Strategy<Value = ChatResponse> {
    let parts = prop::collection::vec(part(dialect), 0..5);
    (parts, finish(), prop::option::of(usage()), 1_u64..4_000_000_000).prop_map(
        |(parts, finish, usage, created)| ChatResponse {
            id: Some(String::from("id-1")),
            model: Some(String::from("model-1")),
            created: Some(created),
            parts,
            finish_reason: Some(finish),
            usage,
            ..ChatResponse::default()
        },
    )
}

fn finish() -> impl Strategy<Value = FinishReason> {
    prop_oneof![
        Just(FinishReason::Stop),
        Just(FinishReason::Length),
        Just(FinishReason::ToolCalls),
        Just(FinishReason::ContentFilter),
    ]
}

fn usage() -> impl Strategy<Value = Usage> {
    let count = || prop::option::of(0_u64..1_000_000);
    (0_u64..1000, count(), count(), count()).prop_map(|(input, output, cached, reasoning)| Usage {
        input_tokens: Some(input + cached.unwrap_or(0)),
        output_tokens: Some(output.unwrap_or(0) + reasoning.unwrap_or(0)),
        cache_read_tokens: cached,
        reasoning_tokens: reasoning,
        ..Usage::default()
    })
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z é\n\"{}<|>]{1,12}",
        Just(String::from("<|channel|>final")),
        "\\PC{1,8}"
    ]
}

fn part(dialect: Dialect) -> impl Strategy<Value = Part> {
    let origin = ReasoningOrigin::dialect(dialect);
    let reasoning = (text(), prop::option::of("[A-Za-z0-9]{4}")).prop_map(move |(text, signature)| {
        Part::from(PartBody::Reasoning(Reasoning {
            form: ReasoningForm::Text,
            text: Some(text),
            signature,
            origin: Some(origin.clone()),
            ..Reasoning::default()
        }))
    });
    let picture = prop::collection::vec(any::<u8>(), 1..20).prop_map(|bytes| {
        let source = MediaSource::Inline(Base64::from_bytes(&bytes));
        Part::from(Media::new(source, Some(String::from("image/png"))))
    });
    prop_oneof![
        4 => text().prop_map(Part::text),
        2 => reasoning,
        1 => text().prop_map(|text| Part::from(PartBody::Refusal(text))),
        3 => ("[a-z]{1,6}", "[a-z_]{1,6}", arguments()).prop_map(|(id, name, arguments)| {
            Part::from(PartBody::ToolCall(ToolCall::from_value(id, name, arguments)))
        }),
        1 => picture,
    ]
}

fn arguments() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({})),
        ("[a-zé\"]{0,5}", any::<i32>()).prop_map(|(text, number)| json!({"a": text, "b": [number]})),
    ]
}

/// The information in a response: without notes about its format, and without ids that a dialect does not
/// have and a decoder must generate.
pub(crate) fn information(mut response: ChatResponse) -> ChatResponse {
    response.ext = response.ext.without_notes();
    for part in &mut response.parts {
        part.ext = std::mem::take(&mut part.ext).without_notes();
        if let PartBody::Media(media) = &mut part.body {
            media.ext = std::mem::take(&mut media.ext).without_notes();
        }
        if let PartBody::ToolCall(call) = &mut part.body
            && let Some(arguments) = &call.arguments
        {
            call.arguments_raw = arguments.to_string();
        }
    }
    for warning in &mut response.warnings {
        *warning = Warning::new(warning.code.clone(), "");
    }
    response
}
