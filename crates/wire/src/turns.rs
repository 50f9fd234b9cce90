//! Messages as turns. One dialect writes an assistant's turn as several items; the others want it as one
//! message, with all calls of the turn together.

use std::borrow::Cow;

use ir::{Dialect, Message, Role};

/// The note on a message that was an item of its own.
pub(crate) const ITEM: &str = "$item";

pub(crate) fn is_item(message: &Message) -> bool {
    message.ext.value(Dialect::OpenaiResponses, ITEM).is_some()
}

/// The messages, with neighbouring items of the assistant joined into one.
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
