//! Decodes and encodes a unary response. The first choice is the response; further choices are preserved as
//! is.

use ir::media::Base64;
use ir::{
    ChatResponse, Error, Fields, FinishReason, Ledger, Map, Media, MediaKind, MediaSource, Part, PartBody,
    Phase,
};
use serde_json::{Value, json};

use crate::losses::record_reasoning_losses;
use crate::openai_chat::content::{decode_part, encode_media, restore};
use crate::openai_chat::message_decode::assistant;
use crate::openai_chat::message_encode::{encode_call, is_call};
use crate::openai_chat::{OWN, usage};
use crate::{constant_field, error_body};

pub fn decode(body: Value) -> Result<ChatResponse, Error> {
    let bad = |what: &str| Error::invalid_response(Phase::BeforeFirstByte, format!("the answer {what}"));
    if let Some(error) = error_body::from_value(OWN, &body, Phase::BeforeFirstByte, None) {
        return Err(error);
    }
    let mut fields = Fields::of(body).ok_or_else(|| bad("is not an object"))?;
    let mut choices = fields.array("choices").unwrap_or_default();
    if choices.is_empty() {
        return Err(bad("has no choices"));
    }
    let more = choices.split_off(1);
    let first = choices.pop().and_then(Fields::of);
    let mut choice = first.ok_or_else(|| bad("has a choice that is not an object"))?;
    let mut message = choice
        .object("message")
        .ok_or_else(|| bad("has a choice without a message"))?;
    let mut response = ChatResponse {
        id: fields.string("id"),
        model: fields.string("model"),
        created: fields.u64("created"),
        ..ChatResponse::default()
    };
    let ext = &mut response.ext;
    constant_field::take(&mut fields, OWN, ext, "", "object", "chat.completion");
    constant_field::take(&mut choice, OWN, ext, "choice", "index", &0_i64);
    constant_field::take(&mut message, OWN, ext, "message", "role", "assistant");
    for (key, known) in [
        ("id", response.id.is_some()),
        ("model", response.model.is_some()),
        ("created", response.created.is_some()),
    ] {
        if !known && fields.peek(key).is_none() {
            constant_field::note_absent(OWN, ext, "", key);
        }
    }
    if choice.peek("finish_reason").is_none() {
        constant_field::note_absent(OWN, ext, "choice", "finish_reason");
    }
    let (parts, _) = assistant(&mut message, &mut response.ext);
    response.parts = parts;
    extra_media(&mut message, &mut response.parts);
    // Calls are last, independent of the field order.
    response
        .parts
        .sort_by_key(|part| matches!(part.body, PartBody::ToolCall(_)) || is_call(part));
    spread_logprobs(&mut choice, &mut response.parts);
    response.finish_reason = choice
        .string("finish_reason")
        .map(|word| finish_of(&word, &mut response.ext));
    let usage = fields.object("usage").map(|usage| Value::Object(usage.rest()));
    response.usage = usage.map(|usage| usage::decode(&usage, OWN));
    if !message.is_empty() {
        fields.put_back("message", Value::Object(message.rest()));
    }
    if !choice.is_empty() {
        fields.put_back("choice", Value::Object(choice.rest()));
    }
    if !more.is_empty() {
        fields.put_back("more_choices", Value::Array(more));
    }
    response.ext.extend(OWN, fields.rest());
    Ok(response)
}

/// Removes a field with its constant value.
pub(super) fn drop_constant(fields: &mut Fields, key: &str, constant: &Value) {
    if fields.peek(key) == Some(constant) {
        fields.take(key);
    }
}

/// Generated images (as several gateways send them) and audio.
fn extra_media(message: &mut Fields, parts: &mut Vec<Part>) {
    if message
        .peek("audio")
        .is_some_and(|audio| audio["data"].is_string())
        && let Some(audio) = message.object("audio")
    {
        parts.push(sound(audio));
    }
    let Some(list) = message.array("images") else {
        return;
    };
    let images: Vec<Part> = list.iter().map(|image| decode_part(image.clone(), OWN)).collect();
    // A list with something else is kept as it is.
    let is_media = |part: &Part| matches!(part.body, PartBody::Media(_));
    if images.is_empty() || !images.iter().all(is_media) {
        return message.put_back("images", Value::Array(list));
    }
    parts.extend(images);
}

fn sound(mut audio: Fields) -> Part {
    let data = Base64::from_text(audio.string("data").unwrap_or_default());
    let mut media = Media::new(MediaSource::Inline(data), None).with_kind(MediaKind::Audio);
    media.text_fallback = audio.string("transcript");
    let mut part = Part::from(media);
    part.ext.extend(OWN, audio.rest());
    part
}

/// Attaches the token probabilities to the text that they belong to.
fn spread_logprobs(choice: &mut Fields, parts: &mut [Part]) {
    let Some(text) = parts.iter_mut().find(|part| part.as_text().is_some()) else {
        return;
    };
    let entries = choice
        .peek("logprobs")
        .and_then(|logprobs| logprobs.get("content")?.as_array());
    if entries.is_none_or(Vec::is_empty) {
        return;
    }
    let Some(mut logprobs) = choice.object("logprobs") else {
        return;
    };
    if let Some(list) = logprobs.array("content") {
        text.ext.set(OWN, "logprobs", list);
    }
    choice.keep("logprobs", logprobs);
}

pub(super) fn finish_of(word: &str, ext: &mut ir::Ext) -> FinishReason {
    match word {
        "stop" => FinishReason::Stop,
        "length" => FinishReason::Length,
        "tool_calls" => FinishReason::ToolCalls,
        "function_call" => {
            ext.set(OWN, "$finish_reason", word);
            FinishReason::ToolCalls
        }
        "content_filter" => FinishReason::ContentFilter,
        other => FinishReason::Other(String::from(other)),
    }
}

pub(super) fn finish_word(reason: &FinishReason, ledger: &mut Ledger) -> String {
    let word = match reason {
        FinishReason::Stop | FinishReason::StopSequence => "stop",
        FinishReason::Length => "length",
        FinishReason::ToolCalls => "tool_calls",
        FinishReason::ContentFilter => "content_filter",
        FinishReason::Pause => {
            let pointer = "/result/payload/finish_reason";
            ledger.changed(
                pointer,
                ir::Action::Replaced,
                "pause",
                "stop",
                format!("{OWN} has no finish reason for a pause"),
            );
            "stop"
        }
        FinishReason::Other(word) => word,
    };
    String::from(word)
}

pub fn encode(response: &ChatResponse, ledger: &mut Ledger) -> Result<Value, Error> {
    let mut message = Map::new();
    let mut logprobs = Vec::new();
    put_parts(response, &mut message, &mut logprobs, ledger)?;
    let mut map = Map::new();
    for (key, value) in [
        ("id", response.id.clone().map(Value::from)),
        ("object", None),
        ("created", response.created.map(Value::from)),
        ("model", response.model.clone().map(Value::from)),
    ] {
        if let Some(value) = value {
            map.insert(String::from(key), value);
        }
    }
    let own = |key: &str| response.ext.value(OWN, key).and_then(Value::as_object);
    let mut choice = Map::new();
    if !logprobs.is_empty() {
        choice.insert(String::from("logprobs"), json!({"content": logprobs}));
    }
    let reason = match response.ext.note(OWN, "$finish_reason") {
        Some(word) => Some(String::from(word)),
        None => response
            .finish_reason
            .as_ref()
            .map(|reason| finish_word(reason, ledger)),
    };
    if let Some(reason) = reason {
        choice.insert(String::from("finish_reason"), json!(reason));
    }
    join(own("message"), &mut message);
    match response.ext.note(OWN, "$content") {
        Some("absent") => {}
        Some("null") | None => constant_field::put(
            &mut message,
            OWN,
            &response.ext,
            "message",
            "content",
            Value::Null,
        ),
        Some(text) => constant_field::put(&mut message, OWN, &response.ext, "message", "content", text),
    }
    constant_field::put(&mut message, OWN, &response.ext, "message", "role", "assistant");
    join(own("choice"), &mut choice);
    constant_field::put(&mut choice, OWN, &response.ext, "choice", "index", 0);
    constant_field::put(
        &mut choice,
        OWN,
        &response.ext,
        "choice",
        "finish_reason",
        Value::Null,
    );
    choice.insert(String::from("message"), Value::Object(message));
    let mut choices = vec![Value::Object(choice)];
    choices.extend(
        response
            .ext
            .value(OWN, "more_choices")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .cloned(),
    );
    map.insert(String::from("choices"), Value::Array(choices));
    if let Some(usage) = &response.usage {
        map.insert(String::from("usage"), usage::encode(usage, &usage::CHAT));
    }
    finish_top(response, &mut map, ledger);
    Ok(Value::Object(map))
}

fn finish_top(response: &ChatResponse, map: &mut Map, ledger: &mut Ledger) {
    let mut ext = response.ext.clone();
    for key in ["message", "choice", "more_choices"] {
        ext.remove(OWN, key);
    }
    restore(&ext, OWN, "/result/payload", map, ledger);
    constant_field::put(map, OWN, &response.ext, "", "object", "chat.completion");
    constant_field::put(map, OWN, &response.ext, "", "id", "");
    constant_field::put(map, OWN, &response.ext, "", "created", 0);
    constant_field::put(map, OWN, &response.ext, "", "model", "");
    book_warnings(response, ledger);
}

pub(crate) fn book_warnings(response: &ChatResponse, ledger: &mut Ledger) {
    for at in 0..response.warnings.len() {
        ledger.dropped(
            format!("/result/payload/warnings/{at}"),
            "warnings are not supported in a response of this dialect",
        );
    }
}

/// Adds missing fields, object by object.
fn join(rest: Option<&Map>, target: &mut Map) {
    if let Some(rest) = rest {
        ir::Ext::of(OWN, rest.clone()).restore(OWN, target);
    }
}

fn put_parts(
    response: &ChatResponse,
    message: &mut Map,
    logprobs: &mut Vec<Value>,
    ledger: &mut Ledger,
) -> Result<(), Error> {
    let as_parts = response.ext.note(OWN, "$content") == Some("parts");
    let mut list = Vec::new();
    let mut text = None::<String>;
    let mut calls = Vec::new();
    for (at, part) in response.parts.iter().enumerate() {
        let pointer = format!("/result/payload/content_parts/{at}");
        match &part.body {
            PartBody::Text(piece) => {
                let mut map = Map::new();
                part.ext.restore(OWN, &mut map);
                if let Some(Value::Array(more)) = map.shift_remove("logprobs") {
                    logprobs.extend(more);
                }
                map.insert(String::from("type"), json!("text"));
                map.insert(String::from("text"), json!(piece));
                ledger.foreign(&pointer, &part.ext, OWN);
                list.push(Value::Object(map));
                text.get_or_insert_default().push_str(piece);
            }
            PartBody::Refusal(text) => append(message, "refusal", text),
            PartBody::Reasoning(_) => put_reasoning(part, &pointer, message, &mut list, ledger),
            PartBody::ToolCall(call) => calls.push(encode_call(call, part, &pointer, ledger)),
            PartBody::Unknown { dialect, raw } if dialect == OWN.as_str() && is_call(part) => {
                calls.push(raw.clone());
            }
            PartBody::Media(media) => put_media(media, part, &pointer, message, ledger)?,
            PartBody::Unknown { dialect, raw } if dialect == OWN.as_str() && as_parts => {
                list.push(raw.clone());
            }
            _ => ledger.dropped(pointer, format!("not supported by {OWN}")),
        }
    }
    if as_parts {
        message.insert(String::from("content"), Value::Array(list));
    } else if let Some(text) = text {
        message.insert(String::from("content"), json!(text));
    }
    if !calls.is_empty() {
        message.insert(String::from("tool_calls"), Value::Array(calls));
    }
    Ok(())
}

fn append(message: &mut Map, key: &str, text: &str) {
    match message.get_mut(key) {
        Some(Value::String(before)) => before.push_str(text),
        _ => {
            message.insert(String::from(key), json!(text));
        }
    }
}

/// A response shows reasoning of any origin; its signature only if the origin is this dialect.
fn put_reasoning(part: &Part, pointer: &str, message: &mut Map, list: &mut Vec<Value>, ledger: &mut Ledger) {
    let PartBody::Reasoning(reasoning) = &part.body else {
        return;
    };
    let text = reasoning.text.as_deref().unwrap_or_default();
    match part.ext.note(OWN, "$key") {
        Some("thinking") => {
            list.push(json!({"type": "thinking", "thinking": [{"type": "text", "text": text}]}));
        }
        key if !text.is_empty() => append(message, key.unwrap_or("reasoning_content"), text),
        _ => {}
    }
    record_reasoning_losses(OWN, pointer, reasoning, ledger);
    ledger.foreign(pointer, &part.ext, OWN);
}

fn put_media(
    media: &Media,
    part: &Part,
    pointer: &str,
    message: &mut Map,
    ledger: &mut Ledger,
) -> Result<(), Error> {
    match (&media.source, media.kind) {
        (MediaSource::Inline(data), MediaKind::Audio) => {
            let mut audio = Map::new();
            audio.insert(String::from("data"), json!(data.as_str()));
            if let Some(transcript) = &media.text_fallback {
                audio.insert(String::from("transcript"), json!(transcript));
            }
            restore(&part.ext, OWN, pointer, &mut audio, ledger);
            message.insert(String::from("audio"), Value::Object(audio));
        }
        _ => {
            let mut image = encode_media(media, pointer, OWN, ledger)?;
            restore(&part.ext, OWN, pointer, &mut image, ledger);
            let images = message.entry("images").or_insert_with(|| json!([]));
            if let Some(images) = images.as_array_mut() {
                images.push(Value::Object(image));
            }
        }
    }
    Ok(())
}
