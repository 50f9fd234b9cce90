//! The content of a message as content blocks: `{"blocks": [..], "text_fallback": ".."}`, or the older
//! `{"text": ".."}` and plain string. A list of blocks without a message around it is a user message.

use ir::{Dialect, Fields, Ledger, Message, Part, PartBody, Role};
use serde_json::{Value, json};

use crate::media::{ConversionContext, ConversionError, check_keys, decode_block, encode_at};
use crate::messages::message_fields::{self, ContentCodec};

const OWN: Dialect = Dialect::ContentBlock;
/// Note: the text of the source had no fallback text.
const NO_FALLBACK: &str = "$no_fallback";
/// Note: the content had no message around it.
const BARE: &str = "$bare";

pub(super) const CONTENT: ContentCodec = ContentCodec {
    own: OWN,
    list_key: Some("blocks"),
    check: check_keys,
    read,
    write,
};

fn read(value: Value) -> Result<Part, ConversionError> {
    let fields = Fields::of(value);
    let mut fields =
        fields.ok_or_else(|| ConversionError::malformed("", "a content block must be an object"))?;
    if fields.peek_str("type") != Some("text") {
        return decode_block(fields).map(Part::from);
    }
    let text = fields.string("text");
    let text = text.ok_or_else(|| ConversionError::malformed("", "a block of type text has no `text`"))?;
    fields.take("type");
    let mut part = Part::text(text.clone());
    match fields.peek("text_fallback") {
        None => part.ext.set(OWN, NO_FALLBACK, true),
        Some(same) if *same == json!(text) => {
            fields.take("text_fallback");
        }
        Some(_) => {}
    }
    part.ext.extend(OWN, fields.rest());
    Ok(part)
}

fn write(
    part: &Part,
    pointer: &str,
    setting: &ConversionContext<'_>,
    ledger: &mut Ledger,
) -> Result<Option<Value>, ConversionError> {
    let value = match &part.body {
        PartBody::Text(text) => {
            let mut block = ir::Map::new();
            block.insert(String::from("type"), json!("text"));
            block.insert(String::from("text"), json!(text));
            part.ext.restore(OWN, &mut block);
            if part.ext.value(OWN, NO_FALLBACK).is_none() {
                block.entry("text_fallback").or_insert_with(|| json!(text));
            }
            Value::Object(block)
        }
        PartBody::Media(media) => encode_at(OWN, media, pointer, setting, ledger)?,
        _ => return Ok(None),
    };
    check_keys(&value).map_err(|refusal| refusal.under(pointer))?;
    Ok(Some(value))
}

/// Content without a message: a list of blocks, or the object that contains them.
pub(super) fn is_bare(value: &Value) -> bool {
    match value {
        Value::Array(list) => !list.is_empty() && list.iter().all(|item| item["type"].is_string()),
        Value::Object(map) => !map.contains_key("role") && map.contains_key("blocks"),
        _ => false,
    }
}

pub(super) fn decode_bare(value: &Value) -> Result<Message, ConversionError> {
    let framed = json!({"role": "user", "content": value});
    let mut message = message_fields::decode(&CONTENT, framed)?;
    message.ext.set(OWN, BARE, true);
    Ok(message)
}

pub(super) fn came_bare(message: &Message) -> bool {
    message.role == Role::User && message.ext.value(OWN, BARE).is_some()
}

pub(super) fn encode_bare(
    message: &Message,
    setting: &ConversionContext<'_>,
    ledger: &mut Ledger,
) -> Result<Value, ConversionError> {
    let mut list = Vec::new();
    message_fields::encode(&CONTENT, message, "", setting, ledger, &mut list)?;
    let mut framed = list.pop().unwrap_or_default();
    Ok(framed["content"].take())
}
