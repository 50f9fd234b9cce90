//! No silent loss: every value of a canonical document is in the target document or named in the ledger.

use std::sync::LazyLock;

use ir::{Component, Dialect, Ledger, PartBody, Payload};
use proptest::prelude::*;
use serde_json::Value;
use wire::{chat, document};

use crate::fixtures::{disturb, disturbances, fixtures};

/// All strings and numbers of a document, including those inside of JSON texts.
fn leaves(value: &Value, pointer: &str, out: &mut Vec<(String, String)>) {
    match value {
        Value::Object(map) => {
            for (key, inner) in map
                .iter()
                .filter(|(key, _)| !key.starts_with('$') || key.starts_with("$$"))
            {
                leaves(inner, &format!("{pointer}/{key}"), out);
            }
        }
        Value::Array(list) => list.iter().for_each(|inner| leaves(inner, pointer, out)),
        Value::String(text) => {
            match serde_json::from_str(text) {
                Ok(inner @ (Value::Object(_) | Value::Array(_))) => return leaves(&inner, pointer, out),
                // Arguments are always JSON, including a bare string.
                Ok(Value::String(inner)) if pointer.ends_with("/arguments_raw") => {
                    return out.push((String::from(pointer), inner));
                }
                _ => {}
            }
            out.push((String::from(pointer), text.clone()));
        }
        Value::Number(number) => out.push((String::from(pointer), number.to_string())),
        Value::Bool(_) | Value::Null => {}
    }
}

/// The pointer without indexes and without the segment that repeats the media kind.
fn place(pointer: &str) -> String {
    let words = ["image", "audio", "video", "document", "media"];
    let steps = pointer.split('/').filter(|step| step.parse::<usize>().is_err());
    let mut out: Vec<&str> = Vec::new();
    for step in steps {
        let repeats = words.contains(&step) && matches!(out.last(), Some(&("content_parts" | "content")));
        if !repeats {
            out.push(step);
        }
    }
    out.join("/")
}

/// Values of the IR's vocabulary, which dialects encode with other names.
fn is_vocabulary(pointer: &str) -> bool {
    let key = pointer.rsplit('/').next().unwrap_or_default();
    let words = [
        "mime_trust",
        "media_kind",
        "role",
        "type",
        "kind",
        "form",
        "dialect",
        "tool_choice",
        "outcome",
        "backend",
        "operation",
        "version",
        "finish_reason",
        "code",
        "provider_code",
    ];
    // The type of audio is a short name in most dialects; a time is seconds in one and a date in another;
    // totals are sums of counts that another dialect has separately; text is part of every response.
    let respelled = [
        "/audio/mime",
        "/payload/created",
        "/usage/input_tokens",
        "/usage/output_tokens",
        "/modalities",
        "/reasoning/summary",
    ];
    words.contains(&key)
        || respelled.iter().any(|end| pointer.ends_with(end))
        || pointer.contains("/origin/")
        || pointer.contains("/usage/raw/")
}

fn check(name: &str, canonical: &Value, target: &Value, ledger: &Ledger, gone: &mut Vec<String>) {
    let mut wanted = Vec::new();
    leaves(canonical, "", &mut wanted);
    let mut found = Vec::new();
    leaves(target, "", &mut found);
    let text = target.to_string();
    let booked: Vec<String> = ledger
        .entries()
        .iter()
        .map(|entry| place(&entry.pointer))
        .collect();
    // One choice is the default of every dialect.
    let unasked = |pointer: &str, value: &str| pointer.ends_with("/generation/n") && value == "1";
    let counts = |pointer: &str, value: &str| !is_vocabulary(pointer) && !unasked(pointer, value);
    for (pointer, value) in wanted.iter().filter(|(pointer, value)| counts(pointer, value)) {
        let quoted = Value::from(value.as_str()).to_string();
        let there = found.iter().any(|(_, other)| other == value)
            || text.contains(quoted.trim_matches('"'))
            || found.iter().any(|(_, other)| other.contains(value.as_str()));
        let here = place(pointer);
        let named = booked
            .iter()
            .any(|booked| here == *booked || here.starts_with(&format!("{booked}/")));
        if !there && !named {
            gone.push(format!("{name}: {pointer} = {value}"));
        }
    }
}

/// Removes media that is not inline.
fn without_addresses(request: &mut ir::Request) {
    let inline = |part: &ir::Part| match &part.body {
        PartBody::Media(media) => matches!(media.source, ir::MediaSource::Inline(_)),
        _ => true,
    };
    let Payload::Chat(chat) = &mut request.payload else {
        return;
    };
    for message in &mut chat.messages {
        message.parts.retain(inline);
        for part in &mut message.parts {
            if let PartBody::ToolResult(result) = &mut part.body {
                result.content.retain(inline);
            }
        }
    }
}

#[test]
fn requests_have_no_silent_loss() {
    let mut gone = Vec::new();
    for from in chat::DIALECTS {
        for (name, body) in fixtures(*from, ".request.json") {
            let whole = document::decode_request(*from, body).unwrap();
            for to in chat::DIALECTS.iter().filter(|to| *to != from) {
                let mut request = whole.clone();
                let mut ledger = Ledger::new(Component::Adapter);
                let mut target = document::encode_request(*to, &request, &mut ledger);
                if let Err(error) = &target {
                    // An error is not a silent loss. The request is retried without that media.
                    assert!(error.message.contains("resolve it first"), "{}", error.message);
                    without_addresses(&mut request);
                    ledger = Ledger::new(Component::Adapter);
                    target = document::encode_request(*to, &request, &mut ledger);
                }
                let canonical = serde_json::to_value(&request).unwrap();
                check(
                    &format!("{from}/{name} to {to}"),
                    &canonical,
                    &target.unwrap(),
                    &ledger,
                    &mut gone,
                );
            }
        }
    }
    assert_eq!(gone, Vec::<String>::new());
}

#[test]
fn responses_have_no_silent_loss() {
    let mut gone = Vec::new();
    for from in chat::DIALECTS {
        for (name, body) in fixtures(*from, ".response.json") {
            let response = document::decode_response(*from, body).unwrap();
            let canonical = serde_json::to_value(&response).unwrap();
            for to in chat::DIALECTS.iter().filter(|to| *to != from) {
                let mut ledger = Ledger::new(Component::Adapter);
                let target = document::encode_response(*to, &response, &mut ledger).unwrap();
                check(
                    &format!("{from}/{name} to {to}"),
                    &canonical,
                    &target,
                    &ledger,
                    &mut gone,
                );
            }
        }
    }
    assert_eq!(gone, Vec::<String>::new());
}

/// Conversion through the canonical form is lossless.
#[test]
fn canonical_form_is_lossless() {
    for from in chat::DIALECTS {
        for (name, body) in fixtures(*from, ".request.json") {
            let request = document::decode_request(*from, body.clone()).unwrap();
            let text = serde_json::to_string(&request).unwrap();
            let again: ir::Request = serde_json::from_str(&text).unwrap();
            assert_eq!(again, request, "{from}/{name}");
            let mut ledger = Ledger::new(Component::Adapter);
            assert_eq!(
                document::encode_request(*from, &again, &mut ledger).unwrap(),
                body,
                "{from}/{name}"
            );
        }
        for (name, body) in fixtures(*from, ".response.json") {
            let response = document::decode_response(*from, body.clone()).unwrap();
            let text = serde_json::to_string(&response).unwrap();
            let again: ir::Response = serde_json::from_str(&text).unwrap();
            let mut ledger = Ledger::new(Component::Adapter);
            assert_eq!(
                document::encode_response(*from, &again, &mut ledger).unwrap(),
                body,
                "{from}/{name}"
            );
        }
    }
}

static REQUESTS: LazyLock<Vec<(Dialect, Value)>> = LazyLock::new(|| {
    let mut all = Vec::new();
    for from in chat::DIALECTS {
        all.extend(
            fixtures(*from, ".request.json")
                .into_iter()
                .map(|(_, body)| (*from, body)),
        );
    }
    all
});

proptest! {
    #![proptest_config(crate::fixtures::cases(96))]

    /// The same for randomly mutated documents, into every dialect.
    #[test]
    fn mutated_requests_have_no_silent_loss(changes in disturbances(), pick: prop::sample::Index) {
        let (from, body) = pick.get(&REQUESTS);
        let mut body = body.clone();
        for change in &changes {
            disturb(&mut body, change);
        }
        let Ok(mut request) = document::decode_request(*from, body) else {
            return Err(TestCaseError::reject("not a request of the dialect"));
        };
        without_addresses(&mut request);
        let canonical = serde_json::to_value(&request).unwrap();
        let mut encoded = 0;
        for to in chat::DIALECTS.iter().filter(|to| *to != from) {
            let mut ledger = Ledger::new(Component::Adapter);
            let Ok(target) = document::encode_request(*to, &request, &mut ledger) else { continue };
            encoded += 1;
            let mut gone = Vec::new();
            check(&format!("{from} to {to}"), &canonical, &target, &ledger, &mut gone);
            prop_assert_eq!(gone, Vec::<String>::new());
        }
        prop_assume!(encoded > 0);
    }
}
