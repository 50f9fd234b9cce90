//! Messages grouped into turns. One dialect encodes an assistant turn as several items; the others require
//! one message with all calls of the turn.

use std::borrow::Cow;

use ir::{Dialect, Message, Role};

/// Note on a message that was a separate item.
pub(crate) const ITEM: &str = "$item";

pub(crate) fn is_item(message: &Message) -> bool {
    message.ext.value(Dialect::OpenaiResponses, ITEM).is_some()
}

/// The messages, with adjacent assistant items merged into one.
pub(crate) fn turns(messages: &[Message]) -> Cow<'_, [Message]> {
    let joins = |pair: &[Message]| match pair {
        [first, second] => joinable(first, second),
        _ => false,
    };
    if !messages.windows(2).any(joins) {
        return Cow::Borrowed(messages);
    }
    let mut joined: Vec<Message> = Vec::with_capacity(messages.len());
    for message in messages {
        match joined.last_mut() {
            Some(last) if joinable(last, message) => {
                last.parts.extend(message.parts.iter().cloned());
                last.ext.merge(message.ext.clone());
                last.content = ir::Content::Parts;
            }
            _ => joined.push(message.clone()),
        }
    }
    Cow::Owned(joined)
}

fn joinable(first: &Message, second: &Message) -> bool {
    first.role == Role::Assistant && second.role == Role::Assistant && is_item(first) && is_item(second)
}
