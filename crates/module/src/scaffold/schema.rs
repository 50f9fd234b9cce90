//! `schema.json` of a new module.

use serde_json::{Map, Value, json};

use super::{Blueprint, field};
use crate::manifest::Modality;
use crate::migrate::{error_schema, extensions_schema, json_document, meta_schema};

pub(super) fn write(blueprint: &Blueprint) -> String {
    let overflow = blueprint.tier.overflow();
    let mut definitions = Map::new();
    if !blueprint.media().is_empty() {
        definitions.insert(String::from("MediaInput"), media_input());
    }
    if overflow.enabled {
        definitions.insert(String::from("extensions"), extensions_schema(overflow.max_items));
    }
    let mut schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "meta": meta_schema(),
        "input": input(blueprint),
        "data": data(blueprint),
        "error": error_schema(blueprint.format()),
    });
    if let Value::Object(schema) = &mut schema
        && !definitions.is_empty()
    {
        schema.insert(String::from("$defs"), Value::Object(definitions));
    }
    json_document(&schema)
}

fn input(blueprint: &Blueprint) -> Value {
    let media = blueprint.media();
    let mut properties = Map::new();
    let text = if media.is_empty() {
        json!({ "type": "string", "minLength": 1 })
    } else {
        json!({ "type": "string", "description": "What to look for." })
    };
    properties.insert(String::from(field(Modality::Text)), text);
    for kind in &media {
        let one = json!({ "$ref": "#/$defs/MediaInput" });
        let schema = match kind {
            Modality::Image => json!({ "type": "array", "minItems": 1, "maxItems": 10, "items": one }),
            _ => one,
        };
        properties.insert(String::from(field(*kind)), schema);
    }
    let required: Vec<&str> = if media.is_empty() {
        vec![field(Modality::Text)]
    } else {
        media.iter().map(|kind| field(*kind)).collect()
    };
    json!({ "type": "object", "required": required, "properties": properties })
}

fn data(blueprint: &Blueprint) -> Value {
    let text = json!({ "type": "string", "minLength": 1 });
    let mut properties = Map::new();
    let mut required = Vec::new();
    if blueprint.output.is_empty() {
        properties.insert(String::from("answer"), text.clone());
        required.push("answer");
    }
    for field in blueprint.output.iter().filter(|field| field.name != "rationale") {
        properties.insert(field.name.clone(), field.schema.clone());
        if field.required {
            required.push(&field.name);
        }
    }
    properties.insert(String::from("rationale"), text);
    required.push("rationale");
    if blueprint.tier.overflow().enabled {
        properties.insert(
            String::from("extensions"),
            json!({ "$ref": "#/$defs/extensions" }),
        );
    }
    json!({ "type": "object", "required": required, "properties": properties })
}

/// The four variants of a media input.
fn media_input() -> Value {
    let media_type = json!({ "type": "string", "pattern": "^(image|audio|video|application)/[a-z0-9.+-]+$" });
    let way = |name: &str, key: &str, value: Value, required: &[&str]| {
        json!({
            "required": required,
            "properties": { "type": { "const": name }, "media_type": media_type, key: value },
        })
    };
    let text = json!({ "type": "string" });
    json!({
        "type": "object",
        "required": ["type"],
        "oneOf": [
            way("url", "url", json!({ "type": "string", "format": "uri" }), &["type", "url"]),
            way(
                "base64",
                "data",
                json!({ "type": "string", "contentEncoding": "base64" }),
                &["type", "media_type", "data"],
            ),
            way("file", "path", text, &["type", "path"]),
            way(
                "upload_ref",
                "upload_id",
                json!({ "type": "string", "pattern": "^upl_[A-Za-z0-9]+$" }),
                &["type", "upload_id"],
            ),
        ],
    })
}
