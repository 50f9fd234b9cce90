//! A whole answer.

use ir::{ChatResponse, Error, Fields, FinishReason, Ledger, Map, PartBody, Phase, Usage};
use serde_json::{Value, json};

use crate::ollama::OWN;
use crate::ollama::message_in::{self, Calls};
use crate::ollama::message_out::{Purpose, put_content_default, put_parts};
use crate::openai_chat::book_warnings;
use crate::{constant, error_body};

pub fn decode(body: Value) -> Result<ChatResponse, Error> {
    if let Some(error) = error_body::from_value(OWN, body.clone(), Phase::BeforeFirstByte, None) {
        return Err(error);
    }
    let bad = |what: &str| Error::invalid_response(Phase::BeforeFirstByte, format!("the answer {what}"));
    let mut fields = Fields::of(body).ok_or_else(|| bad("is not an object"))?;
    let mut message = fields.object("message").ok_or_else(|| bad("has no message"))?;
    let mut response = ChatResponse {
        model: fields.string("model"),
        ..ChatResponse::default()
    };
    constant::take(
        &mut message,
        OWN,
        &mut response.ext,
        "message",
        "role",
        &json!("assistant"),
    );
    response.parts = message_in::parts(&mut message, &mut response.ext, &mut Calls::default());
    constant::take(&mut fields, OWN, &mut response.ext, "", "done", &json!(true));
    if response.model.is_none() && fields.peek("model").is_none() {
        constant::note_absent(OWN, &mut response.ext, "", "model");
    }
    let called = response
        .parts
        .iter()
        .any(|part| matches!(part.body, PartBody::ToolCall(_)));
    if fields.peek("done_reason").is_none() {
        constant::note_absent(OWN, &mut response.ext, "", "done_reason");
    }
    response.finish_reason = fields.string("done_reason").map(|word| finish_of(&word, called));
    response.usage = usage_of(&mut fields);
    if !message.is_empty() {
        fields.put_back("$message", Value::Object(message.rest()));
    }
    response.ext.extend(OWN, fields.rest());
    Ok(response)
}

pub(super) fn usage_of(fields: &mut Fields) -> Option<Usage> {
    let usage = Usage {
        input_tokens: fields.u64("prompt_eval_count"),
        output_tokens: fields.u64("eval_count"),
        ..Usage::default()
    };
    (usage != Usage::default()).then_some(usage)
}

pub(super) fn put_usage(usage: Option<&Usage>, map: &mut Map) {
    for (key, count) in [
        ("prompt_eval_count", usage.and_then(|usage| usage.input_tokens)),
        ("eval_count", usage.and_then(|usage| usage.output_tokens)),
    ] {
        if let Some(count) = count {
            map.insert(String::from(key), json!(count));
        }
    }
}

pub(super) fn book_usage(usage: Option<&Usage>, ledger: &mut Ledger) {
    let lost = [
        (
            "cache_read_tokens",
            usage.is_some_and(|usage| usage.cache_read_tokens.is_some()),
        ),
        (
            "cache_write_tokens",
            usage.is_some_and(|usage| usage.cache_write_tokens.is_some()),
        ),
        (
            "reasoning_tokens",
            usage.is_some_and(|usage| usage.reasoning_tokens.is_some()),
        ),
    ];
    for (key, _) in lost.iter().filter(|(_, there)| *there) {
        ledger.dropped(
            format!("/result/payload/usage/{key}"),
            format!("{OWN} has no word for it"),
        );
    }
}

pub(super) fn finish_of(word: &str, called: bool) -> FinishReason {
    match word {
        "stop" if called => FinishReason::ToolCalls,
        "stop" => FinishReason::Stop,
        "length" => FinishReason::Length,
        other => FinishReason::Other(String::from(other)),
    }
}

pub(super) fn finish_word(reason: &FinishReason) -> &str {
    match reason {
        FinishReason::Stop | FinishReason::StopSequence | FinishReason::ToolCalls | FinishReason::Pause => {
            "stop"
        }
        FinishReason::Length => "length",
        FinishReason::ContentFilter => "content_filter",
        FinishReason::Other(word) => word,
    }
}

/// Unix seconds as RFC 3339, in the proleptic Gregorian calendar.
pub(super) fn timestamp(seconds: u64) -> String {
    let days = seconds / 86_400;
    let (hour, minute, second) = (seconds % 86_400 / 3600, seconds % 3600 / 60, seconds % 60);
    // Days are counted from 0000-03-01, so that a leap day ends its year.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

pub fn encode(response: &ChatResponse, ledger: &mut Ledger) -> Result<Value, Error> {
    let mut message = Map::new();
    put_parts(
        &response.parts,
        Purpose::Show,
        "/result/payload/content_parts",
        &mut message,
        ledger,
    )?;
    if let Some(Value::Object(rest)) = response.ext.value(OWN, "$$message") {
        ir::Ext::of(OWN, rest.clone()).restore(OWN, &mut message);
    }
    constant::put(&mut message, OWN, &response.ext, "message", "role", "assistant");
    put_content_default(&response.ext, &mut message);
    let mut map = Map::new();
    if let Some(model) = &response.model {
        map.insert(String::from("model"), json!(model));
    }
    if let Some(created) = response.created {
        map.insert(String::from("created_at"), json!(timestamp(created)));
    }
    map.insert(String::from("message"), Value::Object(message));
    if let Some(reason) = &response.finish_reason {
        map.insert(String::from("done_reason"), json!(finish_word(reason)));
    }
    put_usage(response.usage.as_ref(), &mut map);
    book_usage(response.usage.as_ref(), ledger);
    let mut ext = response.ext.clone();
    ext.remove(OWN, "$$message");
    ext.restore(OWN, &mut map);
    constant::put(&mut map, OWN, &ext, "", "model", "");
    constant::put(&mut map, OWN, &ext, "", "done", true);
    constant::put(&mut map, OWN, &ext, "", "done_reason", "stop");
    ledger.foreign("/result/payload", &ext, OWN);
    if response.id.is_some() {
        ledger.dropped("/result/payload/id", format!("{OWN} has no word for it"));
    }
    book_warnings(response, ledger);
    Ok(Value::Object(map))
}
