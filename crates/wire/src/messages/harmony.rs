//! The content of a message in the Harmony Schema: a list of parts, or a string, or null.

use ir::{Dialect, Fields, Ledger, Part, PartBody};
use serde_json::{Value, json};

use crate::media::{ConversionContext, ConversionError, decode_part, encode_at};
use crate::messages::message_fields::ContentCodec;

const OWN: Dialect = Dialect::HarmonySchema;

pub(super) const CONTENT: ContentCodec = ContentCodec {
    own: OWN,
    list_key: None,
    check: |_| Ok(()),
    read,
    write,
};

/// One part. An unknown part is preserved completely.
fn read(value: Value) -> Result<Part, ConversionError> {
    let unknown = |raw| {
        Part::from(PartBody::Unknown {
            dialect: String::from(OWN.as_str()),
            raw,
        })
    };
    let Some(mut fields) = Fields::of(value.clone()) else {
        return Ok(unknown(value));
    };
    let (key, body): (_, fn(String) -> PartBody) = match fields.peek_str("type") {
        Some("text") => ("text", PartBody::Text),
        Some("refusal") => ("refusal", PartBody::Refusal),
        _ => return Ok(decode_part(fields).map_or_else(|_| unknown(value), Part::from)),
    };
    let Some(text) = fields.string(key) else {
        return Ok(unknown(value));
    };
    fields.take("type");
    let mut part = Part::from(body(text));
    part.ext.extend(OWN, fields.rest());
    Ok(part)
}

fn write(
    part: &Part,
    pointer: &str,
    setting: &ConversionContext<'_>,
    ledger: &mut Ledger,
) -> Result<Option<Value>, ConversionError> {
    let mut value = match &part.body {
        PartBody::Text(text) => json!({"type": "text", "text": text}),
        PartBody::Refusal(text) => json!({"type": "refusal", "refusal": text}),
        PartBody::Media(media) => encode_at(OWN, media, pointer, setting, ledger)?,
        _ => return Ok(None),
    };
    if let Some(map) = value.as_object_mut() {
        part.ext.restore(OWN, map);
    }
    Ok(Some(value))
}
