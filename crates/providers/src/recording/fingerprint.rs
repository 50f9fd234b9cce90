//! The fingerprint of a request: its content without ids, times, routing and the model name, so that a
//! recording stays valid for the same request. Media is represented by the hash of its bytes, wherever they
//! are stored.

use ir::media::Base64;
use ir::{Payload, Request};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// The normalized request and its hash.
#[derive(Clone, Debug, PartialEq)]
pub struct Fingerprint {
    pub sha256: String,
    pub asked: Value,
}

impl Fingerprint {
    pub fn of(request: &Request) -> Self {
        let asked = asked(request);
        let sha256 = hex::encode(Sha256::digest(asked.to_string().as_bytes()));
        Self { sha256, asked }
    }
}

fn asked(request: &Request) -> Value {
    let mut payload = match &request.payload {
        Payload::Chat(chat) => {
            let mut chat = chat.clone();
            chat.model = None;
            // The stream flag does not change the request.
            chat.generation.stream = None;
            serde_json::to_value(&chat)
        }
        payload => payload.to_json(),
    }
    .unwrap_or_default();
    if let Value::Object(map) = &mut payload {
        map.shift_remove("model");
    }
    let mut asked = json!({
        "operation": request.operation().as_str(),
        "payload": payload,
    });
    if let (Value::Object(map), false) = (&mut asked, request.extra.is_empty()) {
        map.insert(String::from("extra"), json!(request.extra));
    }
    if let (Value::Object(map), false) = (&mut asked, request.patches.is_empty()) {
        map.insert(String::from("patches"), json!(request.patches));
    }
    settle(asked)
}

/// Sorts keys, so that equal requests have equal texts, and replaces media by hashes.
fn settle(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let map = media_by_bytes(map);
            let mut entries: Vec<_> = map.into_iter().map(|(key, value)| (key, settle(value))).collect();
            entries.sort_by(|(a, _), (b, _)| a.cmp(b));
            Value::Object(entries.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(settle).collect()),
        other => other,
    }
}

/// Replaces a media reference with available bytes by their hash, independent of their location.
fn media_by_bytes(map: Map<String, Value>) -> Map<String, Value> {
    let text = |key: &str| map.get(key).and_then(Value::as_str);
    let known = map.get("facts").and_then(|facts| facts.get("sha256"));
    let hash = match text("kind") {
        Some("inline_base64") => {
            let data = Base64::from_text(text("data").unwrap_or_default());
            data.sha256()
                .unwrap_or_else(|_| hex::encode(Sha256::digest(data.as_str())))
        }
        Some("local_file" | "sms_file") => match known.and_then(Value::as_str) {
            Some(known) => String::from(known),
            None => return map,
        },
        _ => return map,
    };
    let mut media = Map::new();
    media.insert(String::from("sha256"), Value::from(hash));
    for key in ["mime", "media_kind", "hints", "text_fallback"] {
        if let Some(value) = map.get(key) {
            media.insert(String::from(key), value.clone());
        }
    }
    media
}
