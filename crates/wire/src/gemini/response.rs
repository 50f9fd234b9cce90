//! Decodes and encodes a unary response. The first candidate is the response; further candidates are
//! preserved as is.

use ir::{Action, ChatResponse, Error, ErrorKind, Ext, Fields, FinishReason, Ledger, Map, PartBody, Phase};
use serde_json::{Value, json};

use crate::call_id::CallIds;
use crate::gemini::part_encode::{Names, Purpose, encode as encode_part};
use crate::gemini::{OWN, merge_text, part_decode, usage};
use crate::openai_chat::book_warnings;
use crate::{constant_field, error_body, timestamp};

pub fn decode(body: Value) -> Result<ChatResponse, Error> {
    if let Some(error) = error_body::from_value(OWN, &body, Phase::BeforeFirstByte, None) {
        return Err(error);
    }
    let bad = |what: &str| Error::invalid_response(Phase::BeforeFirstByte, format!("the answer {what}"));
    let mut fields = Fields::of(body).ok_or_else(|| bad("is not an object"))?;
    let mut candidates = fields.array("candidates").unwrap_or_default();
    if candidates.is_empty() {
        let feedback = fields.peek("promptFeedback");
        return Err(feedback
            .and_then(|feedback| blocked(feedback, Phase::BeforeFirstByte))
            .unwrap_or_else(|| bad("has no candidates")));
    }
    let mut response = ChatResponse {
        id: fields.string("responseId"),
        model: fields.string("modelVersion"),
        ..ChatResponse::default()
    };
    response.created = created(&mut fields, &mut response.ext);
    let usage = fields
        .object("usageMetadata")
        .map(|usage| Value::Object(usage.rest()));
    response.usage = usage.map(|usage| usage::decode(&usage));
    let more = candidates.split_off(1);
    let first = candidates.pop().and_then(Fields::of);
    let mut candidate = first.ok_or_else(|| bad("has a candidate that is not an object"))?;
    let ext = &mut response.ext;
    constant_field::take(&mut candidate, OWN, ext, "candidate", "index", &json!(0));
    let mut content = candidate.object("content").unwrap_or_else(|| {
        constant_field::note_absent(OWN, ext, "candidate", "content");
        Fields::default()
    });
    constant_field::take(&mut content, OWN, ext, "content", "role", &json!("model"));
    let mut calls = CallIds::of_answer(OWN, response.id.as_deref());
    let list = content.array("parts");
    if list.is_none() {
        constant_field::note_absent(OWN, ext, "content", "parts");
    }
    let parts = list.unwrap_or_default().into_iter();
    response.parts = merge_text::join(parts.map(|part| part_decode::decode(part, &mut calls)).collect());
    let called = response
        .parts
        .iter()
        .any(|part| matches!(part.body, PartBody::ToolCall(_)));
    response.finish_reason = candidate
        .string("finishReason")
        .map(|word| finish_of(&word, called, &mut response.ext));
    for (key, kept) in [("content", content), ("candidate", candidate)] {
        if !kept.is_empty() {
            fields.put_back(key, Value::Object(kept.rest()));
        }
    }
    if !more.is_empty() {
        fields.put_back("more_candidates", Value::Array(more));
    }
    response.ext.extend(OWN, fields.rest());
    Ok(response)
}

/// The time of the response. The text has more digits than the IR, so it is noted.
pub(super) fn created(fields: &mut Fields, ext: &mut Ext) -> Option<u64> {
    let seconds = fields.peek_str("createTime").and_then(timestamp::parse)?;
    let text = fields.string("createTime")?;
    ext.set(OWN, "$createTime", text);
    Some(seconds)
}

/// A blocked prompt has no candidates, only feedback.
pub(super) fn blocked(feedback: &Value, phase: Phase) -> Option<Error> {
    let reason = feedback.get("blockReason")?.as_str()?;
    let text = feedback.get("blockReasonMessage").and_then(Value::as_str);
    let message = match text {
        Some(text) => format!("the prompt was blocked: {text} ({reason})"),
        None => format!("the prompt was blocked: {reason}"),
    };
    let error = Error::new(ErrorKind::ContentPolicy, phase, message);
    Some(error.with_provider_code(Some(String::from(reason))))
}

pub(super) fn finish_of(word: &str, called: bool, ext: &mut Ext) -> FinishReason {
    match word {
        "STOP" if called => FinishReason::ToolCalls,
        "STOP" => FinishReason::Stop,
        "MAX_TOKENS" => FinishReason::Length,
        "SAFETY" => FinishReason::ContentFilter,
        "RECITATION"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "LANGUAGE"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION" => {
            ext.set(OWN, "$finishReason", word);
            FinishReason::ContentFilter
        }
        other => FinishReason::Other(String::from(other)),
    }
}

pub(super) fn finish_word(reason: &FinishReason, ledger: &mut Ledger) -> String {
    let word = match reason {
        FinishReason::Stop | FinishReason::StopSequence | FinishReason::ToolCalls => "STOP",
        FinishReason::Length => "MAX_TOKENS",
        FinishReason::ContentFilter => "SAFETY",
        FinishReason::Pause => {
            let pointer = "/result/payload/finish_reason";
            ledger.changed(
                pointer,
                Action::Replaced,
                "pause",
                "STOP",
                format!("{OWN} has no finish reason for a pause"),
            );
            "STOP"
        }
        FinishReason::Other(word) => word,
    };
    String::from(word)
}

pub fn encode(response: &ChatResponse, ledger: &mut Ledger) -> Result<Value, Error> {
    let mut parts = Vec::new();
    for (at, part) in response.parts.iter().enumerate() {
        let pointer = format!("/result/payload/content_parts/{at}");
        for piece in merge_text::split(part) {
            parts.extend(encode_part(
                &piece,
                Purpose::Show,
                &Names::new(),
                &pointer,
                ledger,
            )?);
        }
    }
    let ext = &response.ext;
    let own = |key: &str| ext.value(OWN, key).and_then(Value::as_object).cloned();
    let mut content = Map::new();
    if !constant_field::is_absent(OWN, ext, "content", "parts") || !parts.is_empty() {
        content.insert(String::from("parts"), Value::Array(parts));
    }
    join(own("content"), &mut content);
    let mut candidate = Map::new();
    if !constant_field::is_absent(OWN, ext, "candidate", "content") || !content.is_empty() {
        constant_field::put(&mut content, OWN, ext, "content", "role", "model");
        candidate.insert(String::from("content"), Value::Object(content));
    }
    if let Some(reason) = &response.finish_reason {
        let noted = ext.note(OWN, "$finishReason");
        let word = match noted.filter(|_| *reason == FinishReason::ContentFilter) {
            Some(word) => String::from(word),
            None => finish_word(reason, ledger),
        };
        candidate.insert(String::from("finishReason"), json!(word));
    }
    join(own("candidate"), &mut candidate);
    constant_field::put(&mut candidate, OWN, ext, "candidate", "index", 0);
    let mut candidates = vec![Value::Object(candidate)];
    let more = ext.value(OWN, "more_candidates").and_then(Value::as_array);
    candidates.extend(more.into_iter().flatten().cloned());
    let mut map = Map::new();
    map.insert(String::from("candidates"), Value::Array(candidates));
    put_top(response, &mut map, ledger);
    Ok(Value::Object(map))
}

/// The time of a response, in its original text if noted.
pub(super) fn create_time(seconds: u64, ext: &Ext) -> Option<String> {
    let noted = ext.note(OWN, "$createTime");
    let noted = noted.filter(|text| timestamp::parse(text) == Some(seconds));
    noted.map(String::from).or_else(|| timestamp::format(seconds))
}

fn put_top(response: &ChatResponse, map: &mut Map, ledger: &mut Ledger) {
    let time = response
        .created
        .and_then(|seconds| create_time(seconds, &response.ext));
    if response.created.is_some() && time.is_none() {
        ledger.dropped("/result/payload/created", "the date is after the year 9999");
    }
    if let Some(usage) = &response.usage {
        usage::book(usage, ledger);
    }
    for (key, value) in [
        ("usageMetadata", response.usage.as_ref().map(usage::encode)),
        ("modelVersion", response.model.clone().map(Value::from)),
        ("responseId", response.id.clone().map(Value::from)),
        ("createTime", time.map(Value::from)),
    ] {
        if let Some(value) = value {
            map.insert(String::from(key), value);
        }
    }
    let mut ext = response.ext.clone();
    for key in ["content", "candidate", "more_candidates"] {
        ext.remove(OWN, key);
    }
    ext.restore(OWN, map);
    ledger.foreign("/result/payload", &ext, OWN);
    book_warnings(response, ledger);
}

fn join(rest: Option<Map>, target: &mut Map) {
    if let Some(rest) = rest {
        Ext::of(OWN, rest).restore(OWN, target);
    }
}
