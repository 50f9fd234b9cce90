//! Content parts: text, images, audio, files. Also the base of the Harmony Schema's parts.

use ir::media::{Base64, mime_of_audio_format};
use ir::{
    CacheHint, Dialect, Error, Ext, Fields, Ledger, Map, Media, MediaKind, MediaSource, Part, PartBody,
};
use serde_json::{Value, json};

use crate::media_losses;

/// Decodes one part of the dialect `own`. An unknown part is preserved completely.
pub(crate) fn decode_part(value: Value, own: Dialect) -> Part {
    let unknown = |raw: Value| {
        Part::from(PartBody::Unknown {
            dialect: String::from(own.as_str()),
            raw,
        })
    };
    let Some(mut fields) = Fields::of(value.clone()) else {
        return unknown(value);
    };
    let body = match fields.string("type").as_deref() {
        Some("text") => fields.string("text").map(PartBody::Text),
        Some("refusal") => fields.string("refusal").map(PartBody::Refusal),
        Some("image_url") => image(&mut fields),
        Some("input_audio") => audio(&mut fields, own),
        Some("file") => file(&mut fields, own),
        _ => None,
    };
    let Some(body) = body else { return unknown(value) };
    let mut part = Part::from(body);
    if let Some(cache) = fields.take("cache_control") {
        match cache_hint(&cache) {
            Some(hint) => {
                part.cache = Some(hint);
                part.ext.set(own, "$cache_control", true);
            }
            None => fields.put_back("cache_control", cache),
        }
    }
    part.ext.extend(own, fields.rest());
    part
}

/// `{"type": "ephemeral", "ttl": "1h"}`, if it has no other fields.
pub(crate) fn cache_hint(value: &Value) -> Option<CacheHint> {
    let map = value.as_object()?;
    let known = map.keys().all(|key| key == "type" || key == "ttl");
    if !known || map.get("type")?.as_str()? != "ephemeral" {
        return None;
    }
    let ttl = match map.get("ttl") {
        Some(ttl) => Some(String::from(ttl.as_str()?)),
        None => None,
    };
    Some(CacheHint { ttl, scope: None })
}

pub(crate) fn cache_control(hint: &CacheHint) -> Value {
    match &hint.ttl {
        Some(ttl) => json!({"type": "ephemeral", "ttl": ttl}),
        None => json!({"type": "ephemeral"}),
    }
}

fn image(fields: &mut Fields) -> Option<PartBody> {
    let mut inner = fields.object("image_url")?;
    let Some(url) = inner.string("url") else {
        fields.keep("image_url", inner);
        return None;
    };
    let mut media = Media::from_url(&url).with_kind(MediaKind::Image);
    media.hints.detail = inner.string("detail");
    fields.keep("image_url", inner);
    Some(PartBody::Media(Box::new(media)))
}

fn audio(fields: &mut Fields, own: Dialect) -> Option<PartBody> {
    let mut inner = fields.object("input_audio")?;
    let data = inner.string("data")?;
    let rate = inner.peek("sample_rate").and_then(Value::as_u64);
    let mime = inner
        .peek_str("format")
        .and_then(|format| mime_of_audio_format(format, rate));
    let mut media =
        Media::new(MediaSource::Inline(Base64::from_text(data)), mime).with_kind(MediaKind::Audio);
    if media.mime.is_some() {
        inner.string("format");
    } else {
        media.ext.set(own, "$format", "other");
    }
    media.facts.sample_rate_hz = inner.u64("sample_rate");
    fields.keep("input_audio", inner);
    Some(PartBody::Media(Box::new(media)))
}

fn file(fields: &mut Fields, own: Dialect) -> Option<PartBody> {
    let mut inner = fields.object("file")?;
    let mut media = if let Some(data) = inner.string("file_data") {
        let media = Media::from_url(&data);
        // Without a data URL prefix it is the bare base64 of the file.
        if matches!(media.source, MediaSource::Inline(_)) {
            media
        } else {
            let mut bare = Media::new(MediaSource::Inline(Base64::from_text(data)), None);
            bare.ext.set(own, "$bare", true);
            bare
        }
    } else {
        let id = inner.string("file_id")?;
        Media::new(
            MediaSource::ProviderFile {
                backend: String::from(own.as_str()),
                id,
            },
            None,
        )
    };
    // A file without a declared type is treated as a document.
    if media.kind == MediaKind::Other {
        media.kind = MediaKind::Document;
    }
    media.ext.set(own, "$file", true);
    media.hints.filename = inner.string("filename");
    fields.keep("file", inner);
    Some(PartBody::Media(Box::new(media)))
}

/// Encodes media as a part of `own`, without the fields of the part.
pub(crate) fn encode_media(
    media: &Media,
    pointer: &str,
    own: Dialect,
    ledger: &mut Ledger,
) -> Result<Map, Error> {
    let wants_file = media.ext.value(own, "$file").is_some();
    let (value, carried): (Value, &[&str]) = match (&media.source, media.kind) {
        (MediaSource::ProviderFile { backend, id }, _) if backend == own.as_str() => {
            let mut file = json!({"file_id": id});
            put_filename(&mut file, media);
            (json!({"type": "file", "file": file}), &["hints/filename"])
        }
        (MediaSource::Inline(_) | MediaSource::Remote(_), MediaKind::Image) if !wants_file => {
            let mut image = json!({"url": media.to_url()});
            if let (Some(detail), Some(map)) = (&media.hints.detail, image.as_object_mut()) {
                map.insert(String::from("detail"), json!(detail));
            }
            (
                json!({"type": "image_url", "image_url": image}),
                &["hints/detail"],
            )
        }
        (MediaSource::Inline(data), MediaKind::Audio) if !wants_file => {
            let mut audio = json!({"data": data.as_str()});
            if let Some(map) = audio.as_object_mut() {
                if let Some(format) =
                    audio_format(media).filter(|_| media.ext.value(own, "$format").is_none())
                {
                    map.insert(String::from("format"), json!(format));
                }
                if let (Some(rate), Dialect::HarmonySchema) = (media.facts.sample_rate_hz, own) {
                    map.insert(String::from("sample_rate"), json!(rate));
                }
            }
            let carried: &[&str] = if own == Dialect::HarmonySchema {
                &["facts/sample_rate_hz"]
            } else {
                &[]
            };
            (json!({"type": "input_audio", "input_audio": audio}), carried)
        }
        (MediaSource::Inline(data), _) => {
            let bare = media.ext.value(own, "$bare").is_some();
            let text = if bare {
                String::from(data.as_str())
            } else {
                media.to_url().unwrap_or_default()
            };
            let mut file = json!({"file_data": text});
            put_filename(&mut file, media);
            (json!({"type": "file", "file": file}), &["hints/filename"])
        }
        _ => return Err(media_losses::unresolved(media, pointer, own)),
    };
    media_losses::book(media, pointer, own, carried, ledger);
    match value {
        Value::Object(map) => Ok(map),
        _ => Ok(Map::new()),
    }
}

fn put_filename(file: &mut Value, media: &Media) {
    if let (Some(name), Some(map)) = (&media.hints.filename, file.as_object_mut()) {
        map.insert(String::from("filename"), json!(name));
    }
}

/// The short name of an audio type.
fn audio_format(media: &Media) -> Option<String> {
    let mime = media.mime_or_sniffed()?;
    let rate = media.facts.sample_rate_hz;
    let words = ["wav", "mp3", "ogg", "webm", "flac", "aac", "opus", "m4a", "pcm16"];
    let same = |word: &&str| mime_of_audio_format(word, rate).as_deref() == Some(mime.as_str());
    let word = words.iter().find(|word| same(word));
    let word = word
        .copied()
        .or_else(|| mime.starts_with("audio/L16").then_some("pcm16"));
    Some(word.map_or_else(
        || mime.trim_start_matches("audio/").replace("x-", ""),
        String::from,
    ))
}

/// Records the entries of an `ext` that the target does not support and writes the others.
pub(crate) fn restore(ext: &Ext, own: Dialect, pointer: &str, map: &mut Map, ledger: &mut Ledger) {
    ext.restore(own, map);
    ledger.foreign(pointer, ext, own);
}
