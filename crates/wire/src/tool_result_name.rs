//! Tool names of results, for dialects that identify a result by its call alone. A name equal to the call's
//! name is not a loss; a different name is.

use std::collections::BTreeMap;

use ir::{Dialect, Ledger, Message, PartBody};

pub(crate) fn book(messages: &[Message], own: Dialect, ledger: &mut Ledger) {
    let mut names = BTreeMap::new();
    for (at, message) in messages.iter().enumerate() {
        for (index, part) in message.parts.iter().enumerate() {
            match &part.body {
                PartBody::ToolCall(call) => {
                    names.insert(call.id.as_str(), call.name.as_str());
                }
                PartBody::ToolResult(result) => {
                    let repeated = names.get(result.call_id.as_str()).copied();
                    if result.name.is_some() && result.name.as_deref() != repeated {
                        ledger.dropped(
                            format!("/payload/messages/{at}/content_parts/{index}/name"),
                            format!("{own} identifies a result by its call id"),
                        );
                    }
                }
                _ => {}
            }
        }
    }
}
