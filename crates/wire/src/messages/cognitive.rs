//! The input of a module as one user message: `prompt` is its text, media is in lists by kind. A placeholder
//! in the prompt marks the position of the media; without it the media follows the text.

use ir::{Action, Dialect, Fields, Ledger, Map, Media, MediaKind, Message, Part, PartBody, Role};
use serde_json::{Value, json};

use crate::losses::record_losses;
use crate::media::{self, ConversionContext, ConversionError, encode_at};

const OWN: Dialect = Dialect::Cognitive;
const PLACEHOLDER: &str = "$MEDIA_INPUTS";
const LISTS: [&str; 7] = [
    "images",
    "audio",
    "video",
    "audios",
    "videos",
    "documents",
    "media",
];
/// Notes: the list that contained the media; a prompt with a placeholder; no prompt.
const LIST: &str = "$list";
const PLACED: &str = "$placed";
const NO_PROMPT: &str = "$no_prompt";

pub(super) fn decode(value: Value, setting: &ConversionContext<'_>) -> Result<Message, ConversionError> {
    let mut fields = Fields::of(value)
        .ok_or_else(|| ConversionError::malformed("", "a module's input must be an object"))?;
    let keys: Vec<String> = fields.clone().rest().keys().cloned().collect();
    let mut pieces = Vec::new();
    for key in keys.iter().filter(|key| LISTS.contains(&key.as_str())) {
        let Some(list) = fields.peek(key).and_then(Value::as_array) else {
            continue;
        };
        if let Some(parts) = read_list(key, &list.clone(), setting)? {
            fields.take(key);
            pieces.extend(parts);
        }
    }
    let mut message = Message::new(Role::User, Vec::new());
    match fields.string("prompt") {
        None => {
            message.ext.set(OWN, NO_PROMPT, true);
            message.parts = pieces;
        }
        Some(prompt) => match prompt.split_once(PLACEHOLDER).filter(|_| !pieces.is_empty()) {
            Some((before, after)) => {
                message.ext.set(OWN, PLACED, true);
                let text = |text: &str| (!text.is_empty()).then(|| Part::text(text));
                message.parts.extend(text(before));
                message.parts.extend(pieces);
                message.parts.extend(text(after));
            }
            None => {
                message.parts.push(Part::text(prompt));
                message.parts.extend(pieces);
            }
        },
    }
    message.ext.extend(OWN, fields.rest());
    Ok(message)
}

/// A list that contains only media.
fn read_list(
    key: &str,
    list: &[Value],
    setting: &ConversionContext<'_>,
) -> Result<Option<Vec<Part>>, ConversionError> {
    let mut parts = Vec::new();
    for (at, value) in list.iter().enumerate() {
        let mut part = match media::decode(OWN, value.clone(), setting) {
            Ok(media) => Part::from(kind_by_list(media, key)),
            Err(ConversionError::Malformed { .. }) => return Ok(None),
            Err(refusal) => return Err(refusal.under(&format!("/{key}/{at}"))),
        };
        part.ext.set(OWN, LIST, key);
        parts.push(part);
    }
    Ok((!parts.is_empty()).then_some(parts))
}

/// Derives the kind from the list if the type does not determine it.
fn kind_by_list(mut media: Media, key: &str) -> Media {
    if media.kind == MediaKind::Other {
        media.kind = match key {
            "images" => MediaKind::Image,
            "audio" | "audios" => MediaKind::Audio,
            "video" | "videos" => MediaKind::Video,
            "documents" => MediaKind::Document,
            _ => MediaKind::Other,
        };
        media.ext.set(OWN, LIST, key);
    }
    media
}

fn list_for(part: &Part, media: &Media) -> String {
    let word = match media.kind {
        MediaKind::Image => "images",
        MediaKind::Audio => "audio",
        MediaKind::Video => "video",
        MediaKind::Document => "documents",
        MediaKind::Other => "media",
    };
    String::from(part.ext.note(OWN, LIST).unwrap_or(word))
}

pub(super) fn encode(
    messages: &[Message],
    setting: &ConversionContext<'_>,
    ledger: &mut Ledger,
) -> Result<Value, ConversionError> {
    let [message] = messages else {
        return Err(ConversionError::unsupported(
            "",
            "a module's input is one user message; history is an ordinary input field",
        ));
    };
    if message.role != Role::User {
        return Err(ConversionError::unsupported(
            "/0/role",
            "a module's input is one user message",
        ));
    }
    let mut map = Map::new();
    let mut texts = [Vec::new(), Vec::new()];
    let mut runs = 0;
    let mut in_media = false;
    for (at, part) in message.parts.iter().enumerate() {
        let pointer = format!("/0/content_parts/{at}");
        match &part.body {
            PartBody::Text(text) => {
                in_media = false;
                texts[usize::from(runs > 0)].push(text.as_str());
            }
            PartBody::Media(media) => {
                runs += usize::from(!in_media);
                if runs == 2 && !in_media {
                    ledger.note(&pointer, Action::Merged, "all media is at one position");
                }
                in_media = true;
                let value = encode_at(OWN, &with_implied_kind(part, media), &pointer, setting, ledger)?;
                let slot = map.entry(list_for(part, media)).or_insert_with(|| json!([]));
                if let Value::Array(list) = slot {
                    list.push(value);
                }
            }
            _ => {
                ledger.dropped(&pointer, format!("not supported by {OWN}"));
                continue;
            }
        }
        if part.cache.is_some() {
            ledger.dropped(format!("{pointer}/cache"), format!("not supported by {OWN}"));
        }
        ledger.foreign(&pointer, &part.ext, OWN);
    }
    let [before, after] = texts.map(|texts| texts.join("\n"));
    let placed = message.ext.value(OWN, PLACED).is_some() || !after.is_empty();
    let prompt = if placed {
        format!("{before}{PLACEHOLDER}{after}")
    } else {
        before
    };
    if !prompt.is_empty() || message.ext.value(OWN, NO_PROMPT).is_none() {
        map.insert(String::from("prompt"), json!(prompt));
    }
    book_frame(message, ledger);
    message.ext.restore(OWN, &mut map);
    ledger.foreign("/0", &message.ext, OWN);
    Ok(Value::Object(map))
}

/// Omits the kind of the media if the list implies it.
fn with_implied_kind(part: &Part, media: &Media) -> Media {
    let mut media = media.clone();
    let by_type = media.mime.as_deref().map_or(MediaKind::Other, MediaKind::of_mime);
    let bare = Media::new(media.source.clone(), media.mime.clone());
    if by_type == MediaKind::Other && kind_by_list(bare, &list_for(part, &media)).kind == media.kind {
        media.kind = MediaKind::Other;
    }
    media
}

fn book_frame(message: &Message, ledger: &mut Ledger) {
    let said = [
        ("id", message.id.is_some()),
        ("name", message.name.is_some()),
        ("created_at", message.created_at.is_some()),
        ("cache", message.cache.is_some()),
        ("metadata", message.metadata.is_some()),
    ];
    record_losses(OWN, "/0", &said, ledger);
}
