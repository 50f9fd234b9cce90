//! The golden test of a new module: an input with small inline media, and the expected answer as conditions
//! with a valid example.

use serde_json::{Map, Value, json};

use super::{Blueprint, field};
use crate::manifest::Modality;
use crate::migrate::json_document;

/// A blue square of 16 by 16 pixels.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAAFklEQVR42mMwTjtDEmIY1TCqYfhqAAAyDmUQmeLCAAAAAABJRU5ErkJggg==";
/// A hundredth of a second of silence.
const WAV: &str = "UklGRnQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YVAAAACAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgA==";
/// One empty page.
const PDF: &str = "JVBERi0xLjQKMSAwIG9iajw8L1R5cGUvQ2F0YWxvZy9QYWdlcyAyIDAgUj4+ZW5kb2JqCjIgMCBvYmo8PC9UeXBlL1BhZ2VzL0tpZHNbMyAwIFJdL0NvdW50IDE+PmVuZG9iagozIDAgb2JqPDwvVHlwZS9QYWdlL1BhcmVudCAyIDAgUi9NZWRpYUJveFswIDAgNzIgNzJdPj5lbmRvYmoKdHJhaWxlcjw8L1Jvb3QgMSAwIFI+PgolJUVPRgo=";

pub(super) fn input(blueprint: &Blueprint) -> String {
    let mut input = Map::new();
    let text = if blueprint.media().is_empty() {
        "The meeting was moved from Monday to Thursday because the room was taken."
    } else {
        "What is there?"
    };
    input.insert(String::from(field(Modality::Text)), json!(text));
    for kind in blueprint.media() {
        let inline = |media_type: &str, data: &str| json!({ "type": "base64", "media_type": media_type, "data": data });
        let media = match kind {
            Modality::Image => json!([inline("image/png", PNG)]),
            Modality::Audio => inline("audio/wav", WAV),
            Modality::Document => inline("application/pdf", PDF),
            // No video is small enough to be inlined.
            Modality::Video => json!({
                "type": "url",
                "url": "https://example.org/clip.mp4",
                "media_type": "video/mp4",
            }),
            Modality::Text => continue,
        };
        input.insert(String::from(field(kind)), media);
    }
    json_document(&Value::Object(input))
}

pub(super) fn expected(blueprint: &Blueprint) -> String {
    let answer = if !blueprint.output.is_empty() {
        "The fields were found in the input."
    } else if blueprint.media().is_empty() {
        "The meeting is on Thursday."
    } else {
        "There is nothing to speak of."
    };
    let mut data = Map::new();
    if blueprint.output.is_empty() {
        data.insert(String::from("answer"), json!(answer));
    }
    for field in &blueprint.output {
        data.insert(field.name.clone(), field.example.clone());
    }
    let rationale = data.entry("rationale");
    rationale.or_insert_with(|| json!("The input says so, and nothing in it speaks against it."));
    let is_optional = |name: &str| {
        blueprint
            .output
            .iter()
            .any(|field| field.name == name && !field.required)
    };
    let required: Vec<&String> = data.keys().filter(|name| !is_optional(name)).collect();
    let confidence = blueprint.tier.confidence_min().unwrap_or_default();
    json_document(&json!({
        "$comment": "$validate contains the conditions for every answer; $example is a valid answer.",
        "$validate": {
            "ok": { "const": true },
            "meta": { "properties": { "confidence": { "minimum": confidence } } },
            "data": { "required": required },
        },
        "$example": {
            "ok": true,
            "meta": { "confidence": 0.95, "risk": "none", "explain": answer },
            "data": data,
        },
    }))
}
