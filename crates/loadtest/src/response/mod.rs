//! Responses of the upstream in the vendors' dialects, unstreamed and as events. They are formatted as text,
//! because the upstream must use as little CPU time as possible.

mod chat;
mod media;
mod messages;
mod responses;
#[cfg(test)]
mod tests;

use bytes::Bytes;

use crate::behaviour::{Behaviour, OutputKind};

/// One token, which the load generator counts.
pub(crate) const TOKEN: &str = "tok ";

const ENVELOPE_HEAD: &str = r#"{\"ok\":true,\"meta\":{\"confidence\":0.95,\"risk\":\"low\",\"explain\":\"fine\"},\"data\":{\"result\":\"r\",\"rationale\":\""#;
const ENVELOPE_TAIL: &str = r#"\"}}"#;

/// Tokens of the request, as the upstream reports them.
const ASKED: u64 = 8;

/// The endpoints of the upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResponseRoute {
    Chat,
    Responses,
    Messages,
    CountTokens,
    Embeddings,
    Images,
    Transcriptions,
    Speech,
}

impl ResponseRoute {
    pub(crate) const ALL: [(&'static str, Self); 8] = [
        ("/chat/completions", Self::Chat),
        ("/responses", Self::Responses),
        ("/messages", Self::Messages),
        ("/messages/count_tokens", Self::CountTokens),
        ("/embeddings", Self::Embeddings),
        ("/images/generations", Self::Images),
        ("/audio/transcriptions", Self::Transcriptions),
        ("/audio/speech", Self::Speech),
    ];

    pub(crate) fn of(path: &str) -> Option<Self> {
        let found = Self::ALL.iter().find(|(end, _)| path.ends_with(end));
        found.map(|(_, route)| *route)
    }

    /// The unstreamed response, and its content type.
    pub(crate) fn whole(self, model: &str, behaviour: Behaviour) -> (&'static str, Bytes) {
        let text = match self {
            Self::Chat => chat::whole(model, behaviour),
            Self::Responses => responses::whole(model, behaviour),
            Self::Messages => messages::whole(model, behaviour),
            Self::CountTokens => format!(r#"{{"input_tokens":{ASKED}}}"#),
            Self::Embeddings => media::embeddings(model),
            Self::Images => String::from(media::IMAGE),
            Self::Transcriptions => media::transcription(behaviour),
            Self::Speech => return ("audio/wav", Bytes::from_static(media::SILENCE)),
        };
        ("application/json", Bytes::from(text))
    }

    /// The same as events; `None` for unary operations.
    pub(crate) fn events(self, model: &str, behaviour: Behaviour) -> Option<Events> {
        match self {
            Self::Chat => Some(chat::events(model, behaviour)),
            Self::Responses => Some(responses::events(model, behaviour)),
            Self::Messages => Some(messages::events(model, behaviour)),
            Self::CountTokens | Self::Embeddings | Self::Images | Self::Transcriptions | Self::Speech => None,
        }
    }
}

/// The events of a stream, formatted once per response.
pub(crate) struct Events {
    pub(crate) first: Bytes,
    pub(crate) head: Option<Bytes>,
    pub(crate) token: Bytes,
    pub(crate) tail: Option<Bytes>,
    pub(crate) last: Bytes,
}

impl Events {
    /// `piece` formats a text delta in the dialect.
    fn new(behaviour: Behaviour, first: String, piece: impl Fn(&str) -> String, last: String) -> Self {
        let framed = behaviour.form == OutputKind::Envelope;
        Self {
            first: Bytes::from(first),
            head: framed.then(|| Bytes::from(piece(ENVELOPE_HEAD))),
            token: Bytes::from(piece(TOKEN)),
            tail: framed.then(|| Bytes::from(piece(ENVELOPE_TAIL))),
            last: Bytes::from(last),
        }
    }
}

/// The complete text, escaped for a JSON string.
fn content(behaviour: Behaviour) -> String {
    let tokens = TOKEN.repeat(usize::try_from(behaviour.tokens).unwrap_or(usize::MAX));
    match behaviour.form {
        OutputKind::Text => tokens,
        OutputKind::Envelope => format!("{ENVELOPE_HEAD}{tokens}{ENVELOPE_TAIL}"),
    }
}

/// A named event, as most vendors format it.
fn named(name: &str, rest: &str) -> String {
    format!("event: {name}\ndata: {{\"type\":\"{name}\"{rest}}}\n\n")
}
