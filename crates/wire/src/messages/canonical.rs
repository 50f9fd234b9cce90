//! Messages of canonical documents. The IR types serialize them; this file only converts their media to and
//! from `MediaRef`.

use ir::{Dialect, Ledger, Message, Part, PartBody};
use serde_json::Value;

use crate::media::{ConversionContext, ConversionError, encode_at};

pub(super) fn decode(value: Value) -> Result<Message, ConversionError> {
    serde_json::from_value(value).map_err(|why| ConversionError::malformed("", why.to_string()))
}

pub(super) fn encode(
    message: &Message,
    pointer: &str,
    setting: &ConversionContext<'_>,
    ledger: &mut Ledger,
) -> Result<Value, ConversionError> {
    let bad = |why: serde_json::Error| ConversionError::malformed(pointer, why.to_string());
    let mut value = serde_json::to_value(message).map_err(bad)?;
    for key in ["content_parts", "content"] {
        if let Some(Value::Array(list)) = value.get_mut(key) {
            respell(&message.parts, list, &format!("{pointer}/{key}"), setting, ledger)?;
        }
    }
    Ok(value)
}

fn respell(
    parts: &[Part],
    list: &mut [Value],
    pointer: &str,
    setting: &ConversionContext<'_>,
    ledger: &mut Ledger,
) -> Result<(), ConversionError> {
    for (at, (part, value)) in parts.iter().zip(list).enumerate() {
        let pointer = format!("{pointer}/{at}");
        match &part.body {
            PartBody::Media(media) => {
                let word = media.kind.as_str();
                value[word] = encode_at(Dialect::MediaRef, media, &pointer, setting, ledger)?;
            }
            PartBody::ToolResult(result) => {
                if let Some(Value::Array(inner)) = value.get_mut("content") {
                    respell(
                        &result.content,
                        inner,
                        &format!("{pointer}/content"),
                        setting,
                        ledger,
                    )?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}
