//! The content block of conversations. It references stored media by id only: bytes and URLs must be stored
//! before encoding. All other fields are in `metadata`, and every block has a fallback text for clients that
//! cannot display the media.

use ir::media::StoredRef;
use ir::{Action, Dialect, Fields, Ledger, Map, Media, MediaKind, MediaSource};
use serde_json::{Value, json};

use crate::media::context::ConversionContext;
use crate::media::error::{ConversionError, RequiredAction};
use crate::media::sidecar::{self, NativeFields};
use crate::media::{content_rules, hints};

const OWN: Dialect = Dialect::ContentBlock;
/// Note: the source had no fallback text.
const NO_FALLBACK: &str = "$no_fallback";
/// Marks a fallback text in `metadata` as generated.
const GENERATED: &str = "text_fallback_generated";

const FIELDS: [&str; 9] = [
    "mime",
    "text_fallback",
    "facts/width",
    "facts/height",
    "facts/duration_ms",
    "hints/detail",
    "hints/rotation",
    "hints/index",
    "hints/video_frame",
];

pub(crate) fn decode(fields: Fields) -> Result<Media, ConversionError> {
    let value = Value::Object(fields.rest());
    content_rules::check(&value)?;
    let mut fields = Fields::of(value).unwrap_or_default();
    let word = fields.string("type").unwrap_or_default();
    let kind = match MediaKind::from_word(&word) {
        MediaKind::Other => {
            let reason = "`type` must be image, audio, video or document";
            return Err(ConversionError::malformed("/type", reason));
        }
        kind => kind,
    };
    let id = fields.string("media_id");
    let id = id
        .ok_or_else(|| ConversionError::malformed("", format!("a block of type {word} has no `media_id`")))?;
    let mut media = Media::new(MediaSource::Stored(StoredRef::from_uuid(&id)), None).with_kind(kind);
    media.text_fallback = fields.string("text_fallback");
    let mut generated = false;
    hints::inside(&mut fields, "metadata", |metadata| {
        media.mime = metadata.string("mime_type");
        hints::inside(metadata, "dimensions", |inner| {
            media.facts.width = inner.u64("width");
            media.facts.height = inner.u64("height");
        });
        media.facts.duration_ms = metadata.u64("duration_ms");
        hints::read_view(metadata, &mut media.hints);
        hints::read_place(metadata, &mut media.hints);
        sidecar::read(metadata, &mut media, &plain(kind));
        generated = metadata.peek(GENERATED) == Some(&json!(true))
            && media.text_fallback == Some(fallback(&media))
            && metadata.take(GENERATED).is_some();
    });
    if generated {
        media.text_fallback = None;
    } else if media.text_fallback.is_none() {
        media.ext.set(OWN, NO_FALLBACK, true);
    }
    media.ext.extend(OWN, fields.rest());
    Ok(media)
}

pub(super) fn encode(
    media: &Media,
    pointer: &str,
    setting: &ConversionContext<'_>,
    ledger: &mut Ledger,
) -> Result<Map, ConversionError> {
    let needs = |need| Err(ConversionError::needs(OWN, pointer, need));
    let id = match &media.source {
        MediaSource::Stored(stored) => setting.spell(stored, OWN, ir::MediaId::uuid),
        MediaSource::Inline(_) | MediaSource::Handle(_) => return needs(RequiredAction::Put),
        MediaSource::Remote(_) => return needs(RequiredAction::Fetch),
        MediaSource::LocalFile(_) => return needs(RequiredAction::Read),
        MediaSource::ProviderFile { .. } => {
            return Err(ConversionError::unsupported(
                pointer,
                "only its provider can read this file",
            ));
        }
    };
    let Some(id) = id else {
        return needs(RequiredAction::Alias);
    };
    let kind = kind_of(media);
    let mut map = Map::new();
    map.insert(String::from("type"), json!(kind.as_str()));
    map.insert(String::from("media_id"), json!(id));
    let mut metadata = metadata(media, kind);
    match &media.text_fallback {
        Some(text) => {
            map.insert(String::from("text_fallback"), json!(text));
        }
        None if media.ext.value(OWN, NO_FALLBACK).is_some() => {}
        None => {
            map.insert(String::from("text_fallback"), json!(fallback(media)));
            metadata.insert(String::from(GENERATED), json!(true));
            let reason = format!("{OWN} requires a fallback text and none was given");
            ledger.note(format!("{pointer}/text_fallback"), Action::Added, reason);
        }
    }
    hints::put(&mut map, "metadata", Value::Object(metadata));
    media.ext.restore(OWN, &mut map);
    ledger.foreign(pointer, &media.ext, OWN);
    let block = Value::Object(map);
    content_rules::check(&block).map_err(|refusal| refusal.under(pointer))?;
    match block {
        Value::Object(map) => Ok(map),
        _ => Ok(Map::new()),
    }
}

fn metadata(media: &Media, kind: MediaKind) -> Map {
    let mut metadata = Map::new();
    hints::put(&mut metadata, "mime_type", json!(media.mime));
    let mut dimensions = Map::new();
    hints::put(&mut dimensions, "width", json!(media.facts.width));
    hints::put(&mut dimensions, "height", json!(media.facts.height));
    hints::put(&mut metadata, "dimensions", Value::Object(dimensions));
    hints::put(&mut metadata, "duration_ms", json!(media.facts.duration_ms));
    hints::write_view(&media.hints, &mut metadata);
    hints::write_place(&media.hints, &mut metadata);
    let side = sidecar::write(media, &plain(kind));
    hints::put(&mut metadata, sidecar::KEY, Value::Object(side));
    metadata
}

/// The type of the block. Media of an unknown kind is a document.
fn kind_of(media: &Media) -> MediaKind {
    let by_mime = media.mime.as_deref().map_or(MediaKind::Other, MediaKind::of_mime);
    match (media.kind, by_mime) {
        (MediaKind::Other, MediaKind::Other) => MediaKind::Document,
        (MediaKind::Other, kind) | (kind, _) => kind,
    }
}

fn plain(kind: MediaKind) -> NativeFields<'static> {
    NativeFields {
        fields: &FIELDS,
        kind,
        mime: None,
    }
}

fn fallback(media: &Media) -> String {
    match &media.hints.filename {
        Some(name) => format!("[{name}]"),
        None => format!("[{}]", kind_of(media).as_str()),
    }
}
