//! One set of functions over all dialects with standalone messages. In vendor dialects, messages exist only
//! inside requests and are decoded and encoded there.

use ir::{Dialect, Ledger, Message, Part, PartBody};
use serde_json::Value;

use crate::chat;
use crate::media::{ConversionContext, ConversionError, normalise};
use crate::messages::{canonical, cognitive, content_block, harmony, message_fields};

/// The dialects with standalone messages.
pub const DIALECTS: &[Dialect] = &[
    Dialect::Cognitive,
    Dialect::MediaRef,
    Dialect::ContentBlock,
    Dialect::HarmonySchema,
    Dialect::Canonical,
];

/// Messages and their original container format.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversation {
    pub messages: Vec<Message>,
    pub form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    List,
    /// One message without a list around it.
    Single,
    /// The content of one user message, without the message object.
    Bare,
}

pub fn decode(
    dialect: Dialect,
    value: Value,
    setting: &ConversionContext<'_>,
) -> Result<Conversation, ConversionError> {
    let one = |message: Message, form| Conversation {
        messages: vec![message],
        form,
    };
    match dialect {
        Dialect::Cognitive => return Ok(one(cognitive::decode(value, setting)?, Form::Bare)),
        Dialect::ContentBlock if content_block::is_bare(&value) => {
            return Ok(one(content_block::decode_bare(&value)?, Form::Bare));
        }
        _ if chat::DIALECTS.contains(&dialect) => {
            let messages = chat::decode_messages(dialect, value);
            return Ok(Conversation {
                messages: messages.map_err(|error| ConversionError::malformed("", error.message))?,
                form: Form::List,
            });
        }
        _ => {}
    }
    let (list, form) = match value {
        Value::Array(list) => (list, Form::List),
        single @ Value::Object(_) => (vec![single], Form::Single),
        _ => {
            return Err(ConversionError::malformed(
                "",
                "messages must be a list of objects or one object",
            ));
        }
    };
    let mut messages = Vec::new();
    for (at, value) in list.into_iter().enumerate() {
        let message = match dialect {
            Dialect::MediaRef | Dialect::Canonical => canonical::decode(value),
            Dialect::ContentBlock => message_fields::decode(&content_block::CONTENT, value),
            Dialect::HarmonySchema => message_fields::decode(&harmony::CONTENT, value),
            _ => return Err(none(dialect)),
        };
        let place = if form == Form::List {
            format!("/{at}")
        } else {
            String::new()
        };
        messages.push(message.map_err(|refusal| refusal.under(&place))?);
    }
    Ok(Conversation { messages, form })
}

/// Encodes messages. What the dialect does not support is recorded in the ledger.
pub fn encode(
    dialect: Dialect,
    conversation: &Conversation,
    setting: &ConversionContext<'_>,
    ledger: &mut Ledger,
) -> Result<Value, ConversionError> {
    if dialect == Dialect::Cognitive {
        return cognitive::encode(&conversation.messages, setting, ledger);
    }
    if chat::DIALECTS.contains(&dialect) {
        let written = chat::encode_messages(dialect, &conversation.messages, ledger);
        return written.map_err(|error| ConversionError::unsupported("", error.message));
    }
    if dialect == Dialect::ContentBlock
        && conversation.form == Form::Bare
        && let [message] = conversation.messages.as_slice()
        && content_block::came_bare(message)
    {
        return content_block::encode_bare(message, setting, ledger);
    }
    let mut list = Vec::new();
    for (at, message) in conversation.messages.iter().enumerate() {
        let pointer = format!("/{at}");
        match dialect {
            Dialect::MediaRef | Dialect::Canonical => {
                list.push(canonical::encode(message, &pointer, setting, ledger)?);
            }
            Dialect::ContentBlock => {
                message_fields::encode(
                    &content_block::CONTENT,
                    message,
                    &pointer,
                    setting,
                    ledger,
                    &mut list,
                )?;
            }
            Dialect::HarmonySchema => {
                message_fields::encode(&harmony::CONTENT, message, &pointer, setting, ledger, &mut list)?;
            }
            _ => return Err(none(dialect)),
        }
    }
    if conversation.form != Form::List && list.len() == 1 {
        return Ok(list.pop().unwrap_or_default());
    }
    Ok(Value::Array(list))
}

pub fn convert(
    from: Dialect,
    to: Dialect,
    value: Value,
    setting: &ConversionContext<'_>,
    ledger: &mut Ledger,
) -> Result<Value, ConversionError> {
    let mut conversation = decode(from, value, setting)?;
    if from != to {
        for (at, message) in conversation.messages.iter_mut().enumerate() {
            normalise_parts(&mut message.parts, &format!("/{at}/content_parts"), ledger);
        }
    }
    encode(to, &conversation, setting, ledger)
}

fn normalise_parts(parts: &mut [Part], pointer: &str, ledger: &mut Ledger) {
    for (at, part) in parts.iter_mut().enumerate() {
        let pointer = format!("{pointer}/{at}");
        match &mut part.body {
            PartBody::Media(media) => normalise(media, &pointer, ledger),
            PartBody::ToolResult(result) => {
                normalise_parts(&mut result.content, &format!("{pointer}/content"), ledger);
            }
            _ => {}
        }
    }
}

fn none(dialect: Dialect) -> ConversionError {
    ConversionError::unsupported("", format!("{dialect} has no standalone messages"))
}
