//! Content parts of a message item.

use ir::media::{Base64, mime_of_audio_format};
use ir::{Error, Fields, Ledger, Map, Media, MediaKind, MediaSource, Part, PartBody, Role};
use serde_json::{Value, json};

use crate::media_losses;
use crate::openai_responses::OWN;

pub(super) fn decode(value: Value, role: Role) -> Part {
    let unknown = |raw: Value| {
        Part::from(PartBody::Unknown {
            dialect: String::from(OWN.as_str()),
            raw,
        })
    };
    let Some(mut fields) = Fields::of(value.clone()) else {
        return unknown(value);
    };
    let kind = fields.string("type").unwrap_or_default();
    let body = match kind.as_str() {
        "input_text" | "output_text" => fields.string("text").map(PartBody::Text),
        "refusal" => fields.string("refusal").map(PartBody::Refusal),
        "input_image" | "input_file" => {
            media(&mut fields, &kind).map(|media| PartBody::Media(Box::new(media)))
        }
        "input_audio" => audio(&mut fields).map(|media| PartBody::Media(Box::new(media))),
        _ => None,
    };
    let Some(body) = body else { return unknown(value) };
    let mut part = Part::from(body);
    if part.as_text().is_some() && kind != text_word(role) {
        part.ext.set(OWN, "$type", kind);
    }
    part.ext.extend(OWN, fields.rest());
    part
}

pub(super) fn text_word(role: Role) -> &'static str {
    if role == Role::Assistant {
        "output_text"
    } else {
        "input_text"
    }
}

fn media(fields: &mut Fields, kind: &str) -> Option<Media> {
    let mut media = if let Some(url) = fields.string("image_url") {
        Media::from_url(&url)
    } else if let Some(data) = fields.string("file_data") {
        let media = Media::from_url(&data);
        if !matches!(media.source, MediaSource::Inline(_)) {
            return None;
        }
        media
    } else if let Some(url) = fields.string("file_url") {
        Media::new(MediaSource::Remote(url), None)
    } else {
        let id = fields.string("file_id")?;
        Media::new(
            MediaSource::ProviderFile {
                backend: String::from(OWN.as_str()),
                id,
            },
            None,
        )
    };
    let image = kind == "input_image";
    media.kind = if image {
        MediaKind::Image
    } else {
        MediaKind::Document
    };
    if image {
        media.hints.detail = fields.string("detail");
    } else {
        media.hints.filename = fields.string("filename");
    }
    media.ext.set(OWN, "$type", kind);
    Some(media)
}

fn audio(fields: &mut Fields) -> Option<Media> {
    let map = fields.peek("input_audio")?.as_object()?;
    let (data, format) = (map.get("data")?.as_str()?, map.get("format")?.as_str()?);
    let mime = mime_of_audio_format(format, None)?;
    let media = Media::new(MediaSource::Inline(Base64::from_text(data)), Some(mime));
    let exact = map.len() == 2;
    exact.then(|| fields.take("input_audio"))?;
    Some(media)
}

/// One part; `None` if the dialect does not support it, which is recorded as a loss.
pub(super) fn encode(
    part: &Part,
    role: Role,
    pointer: &str,
    ledger: &mut Ledger,
) -> Result<Option<Value>, Error> {
    let mut map = match &part.body {
        PartBody::Text(text) => {
            let word = part.ext.note(OWN, "$type").unwrap_or_else(|| text_word(role));
            object(json!({"type": word, "text": text}))
        }
        PartBody::Refusal(text) => object(json!({"type": "refusal", "refusal": text})),
        PartBody::Media(media) => encode_media(media, pointer, ledger)?,
        PartBody::Unknown { dialect, raw } if dialect == OWN.as_str() => return Ok(Some(raw.clone())),
        _ => {
            ledger.dropped(pointer, format!("not supported by {OWN}"));
            return Ok(None);
        }
    };
    if part.cache.is_some() {
        ledger.dropped(format!("{pointer}/cache"), format!("{OWN} caches automatically"));
    }
    part.ext.restore(OWN, &mut map);
    ledger.foreign(pointer, &part.ext, OWN);
    Ok(Some(Value::Object(map)))
}

fn encode_media(media: &Media, pointer: &str, ledger: &mut Ledger) -> Result<Map, Error> {
    let image = match media.ext.note(OWN, "$type") {
        Some(word) => word == "input_image",
        None => media.kind == MediaKind::Image,
    };
    let mut carried: &[&str] = if image {
        &["hints/detail"]
    } else {
        &["hints/filename"]
    };
    let mut map = match (&media.source, image) {
        (MediaSource::ProviderFile { backend, id }, _) if backend == OWN.as_str() => {
            object(json!({"type": if image { "input_image" } else { "input_file" }, "file_id": id}))
        }
        (MediaSource::Inline(_) | MediaSource::Remote(_), true) => {
            object(json!({"type": "input_image", "image_url": media.to_url()}))
        }
        (MediaSource::Inline(data), false) if media.kind == MediaKind::Audio => {
            carried = &[];
            let mime = media.mime_or_sniffed().unwrap_or_default();
            let words = ["wav", "mp3", "ogg", "webm", "flac", "aac", "opus", "m4a"];
            let word = words
                .iter()
                .find(|word| mime_of_audio_format(word, None).as_deref() == Some(&mime));
            let audio = json!({"data": data.as_str(), "format": word.unwrap_or(&"wav")});
            object(json!({"type": "input_audio", "input_audio": audio}))
        }
        (MediaSource::Inline(_), false) => object(json!({"type": "input_file", "file_data": media.to_url()})),
        (MediaSource::Remote(url), false) => object(json!({"type": "input_file", "file_url": url})),
        _ => return Err(media_losses::unresolved(media, pointer, OWN)),
    };
    if carried.contains(&"hints/detail")
        && let Some(detail) = &media.hints.detail
    {
        map.insert(String::from("detail"), json!(detail));
    }
    if carried.contains(&"hints/filename")
        && let Some(name) = &media.hints.filename
    {
        map.insert(String::from("filename"), json!(name));
    }
    media_losses::book(media, pointer, OWN, carried, ledger);
    Ok(map)
}

pub(super) fn object(value: Value) -> Map {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
