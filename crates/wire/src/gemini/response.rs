//! A whole answer. The first candidate is the answer; further ones are kept as they are.

use ir::{ChatResponse, Error, Fields, FinishReason, Ledger, Map, Part, PartBody, Phase};
use serde_json::{Value, json};

use crate::gemini::part_in::{self, Calls};
use crate::gemini::part_out::{Names, Purpose, encode as encode_part};
use crate::gemini::{OWN, usage};
use crate::openai_chat::book_warnings;
use crate::{constant, error_body};

pub fn decode(body: Value) -> Result<ChatResponse, Error> {
    if let Some(error) = error_body::from_value(OWN, body.clone(), Phase::BeforeFirstByte, None) {
        return Err(error);
    }
    let bad = |what: &str| Error::invalid_response(Phase::BeforeFirstByte, format!("the answer {what}"));
    let mut fields = Fields::of(body).ok_or_else(|| bad("is not an object"))?;
    let mut response = ChatResponse {
        id: fields.string("responseId"),
        model: fields.string("modelVersion"),
        ..ChatResponse::default()
    };
    let usage = fields
        .object("usageMetadata")
        .map(|usage| Value::Object(usage.rest()));
    response.usage = usage.map(|usage| usage::decode(&usage));
    let mut candidates = fields.array("candidates").unwrap_or_default();
    if candidates.is_empty() {
        // A prompt that was turned down has no candidates, only feedback.
        if fields.peek("promptFeedback").is_none() {
            return Err(bad("has no candidates"));
        }
        response.finish_reason = Some(FinishReason::ContentFilter);
        response.ext.extend(OWN, fields.rest());
        response.ext.set(OWN, "$candidates", "absent");
        return Ok(response);
    }
    let more = candidates.split_off(1);
    let first = candidates.pop().and_then(Fields::of);
    let mut candidate = first.ok_or_else(|| bad("has a candidate that is not an object"))?;
    let mut content = candidate.object("content").unwrap_or_else(|| {
        constant::note_absent(OWN, &mut response.ext, "candidate", "content");
        Fields::default()
    });
    if !content.peek("parts").is_some_and(Value::is_array) {
        constant::note_absent(OWN, &mut response.ext, "content", "parts");
    }
    constant::take(
        &mut content,
        OWN,
        &mut response.ext,
        "content",
        "role",
        &json!("model"),
    );
    let mut calls = Calls::default();
    let parts = content.array("parts").unwrap_or_default().into_iter();
    response.parts = parts.map(|part| part_in::decode(part, &mut calls)).collect();
    if candidate.peek("finishReason").is_none() {
        constant::note_absent(OWN, &mut response.ext, "candidate", "finishReason");
    }
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

pub(super) fn finish_of(word: &str, called: bool, ext: &mut ir::Ext) -> FinishReason {
    match word {
        "STOP" if called => FinishReason::ToolCalls,
        "STOP" => FinishReason::Stop,
        "MAX_TOKENS" => FinishReason::Length,
        "SAFETY" => FinishReason::ContentFilter,
        "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "IMAGE_SAFETY" | "LANGUAGE" => {
            ext.set(OWN, "$finish_reason", word);
            FinishReason::ContentFilter
        }
        other => FinishReason::Other(String::from(other)),
    }
}

pub(super) fn finish_word(reason: &FinishReason) -> &str {
    match reason {
        FinishReason::Stop | FinishReason::StopSequence | FinishReason::ToolCalls | FinishReason::Pause => {
            "STOP"
        }
        FinishReason::Length => "MAX_TOKENS",
        FinishReason::ContentFilter => "SAFETY",
        FinishReason::Other(word) => word,
    }
}

/// Neighbouring texts of another dialect's answer become one: here a border between them says nothing.
fn joined(parts: &[Part]) -> Vec<Part> {
    let mut out: Vec<Part> = Vec::new();
    for part in parts {
        let own = part.ext.get(OWN).is_some();
        match (out.last_mut(), &part.body) {
            (
                Some(Part {
                    body: PartBody::Text(before),
                    ext,
                    ..
                }),
                PartBody::Text(text) | PartBody::Refusal(text),
            ) if !own && ext.get(OWN).is_none() => {
                before.push_str(text);
                ext.merge(part.ext.clone());
            }
            (
                Some(Part {
                    body: PartBody::Reasoning(before),
                    ..
                }),
                PartBody::Reasoning(next),
            ) if before.signature.is_none() && before.text.is_some() && next.text.is_some() => {
                before
                    .text
                    .get_or_insert_default()
                    .push_str(next.text.as_deref().unwrap_or_default());
                before.signature.clone_from(&next.signature);
            }
            (_, PartBody::Refusal(text)) => out.push(Part {
                body: PartBody::Text(text.clone()),
                ..part.clone()
            }),
            _ => out.push(part.clone()),
        }
    }
    out
}

pub fn encode(response: &ChatResponse, ledger: &mut Ledger) -> Result<Value, Error> {
    let native = response.ext.get(OWN).is_some();
    let whole = if native {
        response.parts.clone()
    } else {
        joined(&response.parts)
    };
    let mut parts = Vec::new();
    for (at, part) in whole.iter().enumerate() {
        let pointer = format!("/result/payload/content_parts/{at}");
        parts.extend(encode_part(part, Purpose::Show, &Names::new(), &pointer, ledger)?);
    }
    let ext = &response.ext;
    let mut map = Map::new();
    let own = |key: &str| ext.value(OWN, key).and_then(Value::as_object).cloned();
    if ext.note(OWN, "$candidates").is_none() {
        let mut content = Map::new();
        if !constant::is_absent(OWN, ext, "content", "parts") || !parts.is_empty() {
            content.insert(String::from("parts"), Value::Array(parts));
        }
        join(own("content"), &mut content);
        constant::put(&mut content, OWN, ext, "content", "role", "model");
        let mut candidate = Map::new();
        if !constant::is_absent(OWN, ext, "candidate", "content") {
            candidate.insert(String::from("content"), Value::Object(content));
        }
        let reason = ext
            .note(OWN, "$finish_reason")
            .or_else(|| response.finish_reason.as_ref().map(finish_word));
        if let Some(reason) = reason {
            candidate.insert(String::from("finishReason"), json!(reason));
        }
        join(own("candidate"), &mut candidate);
        let mut candidates = vec![Value::Object(candidate)];
        let more = ext.value(OWN, "more_candidates").and_then(Value::as_array);
        candidates.extend(more.into_iter().flatten().cloned());
        map.insert(String::from("candidates"), Value::Array(candidates));
    }
    put_top(response, &mut map, ledger);
    Ok(Value::Object(map))
}

fn put_top(response: &ChatResponse, map: &mut Map, ledger: &mut Ledger) {
    for (key, value) in [
        ("usageMetadata", response.usage.as_ref().map(usage::encode)),
        ("modelVersion", response.model.clone().map(Value::from)),
        ("responseId", response.id.clone().map(Value::from)),
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
    if response.created.is_some() {
        ledger.dropped("/result/payload/created", format!("{OWN} has no word for it"));
    }
    book_warnings(response, ledger);
}

fn join(rest: Option<Map>, target: &mut Map) {
    if let Some(rest) = rest {
        ir::Ext::of(OWN, rest).restore(OWN, target);
    }
}
