//! The part of the Harmony Schema: images by URL or `data:` URL, audio as base64, anything else as a file. A
//! superset of the parts of chat completions, with a rotation, the position of a frame in its video and a
//! sample rate. Stored images are named `media:///<uuid>`; a real URL is generated on output.

use ir::media::{Base64, StoredRef, mime_of_audio_format};
use ir::{Dialect, Fields, Ledger, Map, Media, MediaId, MediaKind, MediaSource};
use serde_json::{Value, json};

use crate::media::context::ConversionContext;
use crate::media::error::{ConversionError, RequiredAction};
use crate::media::hints;
use crate::media::sidecar::{self, NativeFields};

const OWN: Dialect = Dialect::HarmonySchema;
const STORED: &str = "media:///";

/// Notes about the source format: it was a file, whatever its kind; its base64 was not a `data:` URL; the
/// head of the `data:` URL, if it differs from the generated one; the audio format was unknown; no sample
/// rate.
const FILE: &str = "$file";
const BARE: &str = "$bare";
const HEAD: &str = "$head";
const NO_FORMAT: &str = "$no_format";
const NO_RATE: &str = "$no_rate";

const IMAGE_FIELDS: &[&str] = &hints::FIELDS;
const AUDIO_FIELDS: &[&str] = &["facts/sample_rate_hz", "hints/index", "hints/video_frame"];
const FILE_FIELDS: &[&str] = &["hints/filename", "hints/index", "hints/video_frame"];
const AUDIO_WORDS: [&str; 9] = ["wav", "mp3", "ogg", "webm", "flac", "aac", "opus", "m4a", "pcm16"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Image,
    Audio,
    File,
}

impl Shape {
    const fn word(self) -> &'static str {
        match self {
            Self::Image => "image_url",
            Self::Audio => "input_audio",
            Self::File => "file",
        }
    }

    fn plain(self, mime: Option<&str>) -> NativeFields<'_> {
        let (fields, kind) = match self {
            Self::Image => (IMAGE_FIELDS, MediaKind::Image),
            Self::Audio => (AUDIO_FIELDS, MediaKind::Audio),
            Self::File => (FILE_FIELDS, MediaKind::Document),
        };
        NativeFields { fields, kind, mime }
    }
}

pub(crate) fn decode(mut fields: Fields) -> Result<Media, ConversionError> {
    let shape = match fields.string("type").as_deref() {
        Some("image_url") => Shape::Image,
        Some("input_audio") => Shape::Audio,
        Some("file") => Shape::File,
        _ => {
            let reason = "`type` must be image_url, input_audio or file";
            return Err(ConversionError::malformed("/type", reason));
        }
    };
    let word = shape.word();
    let mut inner = fields
        .object(word)
        .ok_or_else(|| ConversionError::malformed("", format!("a part of type {word} has no `{word}`")))?;
    let media = match shape {
        Shape::Image => image(&mut inner),
        Shape::Audio => audio(&mut inner),
        Shape::File => file(&mut inner),
    };
    let mut media =
        media.ok_or_else(|| ConversionError::malformed(&format!("/{word}"), "the media has no source"))?;
    fields.keep(word, inner);
    hints::read_place(&mut fields, &mut media.hints);
    let mime = media.mime.clone();
    sidecar::read(&mut fields, &mut media, &shape.plain(mime.as_deref()));
    if shape == Shape::Audio {
        know_format(&mut fields, &mut media);
    }
    media.ext.extend(OWN, fields.rest());
    Ok(media)
}

fn image(inner: &mut Fields) -> Option<Media> {
    let mut media = from_url(&inner.string("url")?);
    media.kind = MediaKind::Image;
    hints::read_view(inner, &mut media.hints);
    Some(media)
}

/// Like a URL, but ids of stored media are recognized, and an unusual head of a `data:` URL is noted.
fn from_url(url: &str) -> Media {
    if let Some(id) = url.strip_prefix(STORED) {
        let stored = match StoredRef::from_uuid(id) {
            StoredRef::Foreign { .. } => StoredRef::Foreign {
                dialect: OWN,
                text: String::from(url),
            },
            known @ StoredRef::Id(_) => known,
        };
        return Media::new(MediaSource::Stored(stored), None);
    }
    let mut media = Media::from_url(url);
    if let MediaSource::Inline(data) = &media.source
        && (media.mime.is_none() || media.to_url().as_deref() != Some(url))
        && let Some(head) = url.strip_suffix(data.as_str())
    {
        media.ext.set(OWN, HEAD, head);
    }
    media
}

fn audio(inner: &mut Fields) -> Option<Media> {
    let data = inner.string("data")?;
    let rate = inner.u64("sample_rate");
    let format = inner.peek_str("format");
    let mime = format.and_then(|format| mime_of_audio_format(format, rate));
    let unrated = format == Some("pcm16") && rate.is_none();
    let mut media = Media::new(MediaSource::Inline(Base64::from_text(data)), mime);
    media.kind = MediaKind::Audio;
    media.facts.sample_rate_hz = rate;
    if unrated {
        media.ext.set(OWN, NO_RATE, true);
    }
    // An unknown format stays among the unknown fields.
    if media.mime.is_some() {
        inner.take("format");
    } else {
        media.ext.set(OWN, NO_FORMAT, true);
    }
    Some(media)
}

/// Removes the short format name if it follows from the media type.
fn know_format(fields: &mut Fields, media: &mut Media) {
    let Some(word) = media.mime.as_deref().map(audio_word) else {
        return;
    };
    hints::inside(fields, Shape::Audio.word(), |inner| {
        if inner.peek_str("format") == Some(&word) {
            inner.take("format");
            media.ext.remove(OWN, NO_FORMAT);
        }
    });
}

fn file(inner: &mut Fields) -> Option<Media> {
    let mut media = match inner.string("file_data") {
        Some(data) => {
            let media = from_url(&data);
            if matches!(media.source, MediaSource::Inline(_)) {
                media
            } else {
                let mut bare = Media::new(MediaSource::Inline(Base64::from_text(data)), None);
                bare.ext.set(OWN, BARE, true);
                bare
            }
        }
        None => {
            let backend = String::from(OWN.as_str());
            let id = inner.string("file_id")?;
            Media::new(MediaSource::ProviderFile { backend, id }, None)
        }
    };
    media.kind = MediaKind::Document;
    media.ext.set(OWN, FILE, true);
    media.hints.filename = inner.string("filename");
    Some(media)
}

pub(super) fn encode(
    media: &Media,
    pointer: &str,
    setting: &ConversionContext<'_>,
    ledger: &mut Ledger,
) -> Result<Map, ConversionError> {
    let shape = shape_of(media, pointer)?;
    let mut inner = Map::new();
    let mime = match shape {
        Shape::Image => {
            let (url, mime) = url_of(media, pointer, setting)?;
            inner.insert(String::from("url"), json!(url));
            hints::write_view(&media.hints, &mut inner);
            mime
        }
        Shape::Audio => put_audio(media, &mut inner),
        Shape::File => {
            let mime = put_file(media, pointer, setting, &mut inner)?;
            hints::put(&mut inner, "filename", json!(media.hints.filename));
            mime
        }
    };
    let mut map = Map::new();
    map.insert(String::from("type"), json!(shape.word()));
    map.insert(String::from(shape.word()), Value::Object(inner));
    hints::write_place(&media.hints, &mut map);
    let side = sidecar::write(media, &shape.plain(mime.as_deref()));
    hints::put(&mut map, sidecar::KEY, Value::Object(side));
    media.ext.restore(OWN, &mut map);
    ledger.foreign(pointer, &media.ext, OWN);
    Ok(map)
}

/// The encoding of the media. Only images have URLs in this form; other media requires its bytes.
fn shape_of(media: &Media, pointer: &str) -> Result<Shape, ConversionError> {
    let needs = |need| Err(ConversionError::needs(OWN, pointer, need));
    let picture = kind_of(media) == MediaKind::Image;
    match &media.source {
        MediaSource::ProviderFile { backend, .. } if backend == OWN.as_str() => Ok(Shape::File),
        MediaSource::ProviderFile { .. } => Err(ConversionError::unsupported(
            pointer,
            "only its provider can read this file",
        )),
        MediaSource::LocalFile(_) => needs(RequiredAction::Read),
        MediaSource::Handle(_) => needs(RequiredAction::Load),
        MediaSource::Inline(_) if media.ext.value(OWN, FILE).is_some() => Ok(Shape::File),
        MediaSource::Inline(_) if kind_of(media) == MediaKind::Audio => Ok(Shape::Audio),
        _ if picture => Ok(Shape::Image),
        MediaSource::Inline(_) => Ok(Shape::File),
        MediaSource::Stored(_) => needs(RequiredAction::Load),
        MediaSource::Remote(_) => needs(RequiredAction::Fetch),
    }
}

/// The kind, derived from the type, the first bytes or the file name if it is not declared.
fn kind_of(media: &Media) -> MediaKind {
    if media.kind != MediaKind::Other {
        return media.kind;
    }
    if let Some(mime) = media.mime_or_sniffed() {
        return MediaKind::of_mime(&mime);
    }
    let MediaSource::Remote(url) = &media.source else {
        return MediaKind::Other;
    };
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let ending = path
        .rsplit(['.', '/'])
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    match ending.as_str() {
        "png" | "jpg" | "jpeg" | "gif" | "webp" => MediaKind::Image,
        _ => MediaKind::Other,
    }
}

/// The URL of an image or the bytes of a file, and the type that it shows.
fn url_of(
    media: &Media,
    pointer: &str,
    setting: &ConversionContext<'_>,
) -> Result<(String, Option<String>), ConversionError> {
    match &media.source {
        MediaSource::Stored(stored) => {
            let mint = |id: MediaId| format!("{STORED}{}", id.uuid());
            let url = setting.spell(stored, OWN, mint);
            let url = url.ok_or_else(|| ConversionError::needs(OWN, pointer, RequiredAction::Alias))?;
            Ok((url, None))
        }
        MediaSource::Inline(data) => match media.ext.note(OWN, HEAD) {
            Some(head) => {
                let url = format!("{head}{}", data.as_str());
                let mime = Media::from_url(&url).mime;
                Ok((url, mime))
            }
            None => {
                let mime = media.mime_or_sniffed();
                let head = mime.as_deref().unwrap_or("application/octet-stream");
                Ok((format!("data:{head};base64,{}", data.as_str()), mime))
            }
        },
        _ => Ok((media.to_url().unwrap_or_default(), None)),
    }
}

fn put_file(
    media: &Media,
    pointer: &str,
    setting: &ConversionContext<'_>,
    inner: &mut Map,
) -> Result<Option<String>, ConversionError> {
    let (key, text, mime) = match &media.source {
        MediaSource::ProviderFile { id, .. } => ("file_id", id.clone(), None),
        MediaSource::Inline(data) if media.ext.value(OWN, BARE).is_some() => {
            ("file_data", String::from(data.as_str()), None)
        }
        _ => {
            let (url, mime) = url_of(media, pointer, setting)?;
            ("file_data", url, mime)
        }
    };
    inner.insert(String::from(key), json!(text));
    Ok(mime)
}

/// Writes the audio and returns the type that its fields imply.
fn put_audio(media: &Media, inner: &mut Map) -> Option<String> {
    if let MediaSource::Inline(data) = &media.source {
        inner.insert(String::from("data"), json!(data.as_str()));
    }
    let mime = media.mime_or_sniffed();
    let format = mime
        .as_deref()
        .filter(|_| media.ext.value(OWN, NO_FORMAT).is_none())
        .map(audio_word);
    hints::put(inner, "format", json!(format));
    let lacks_rate = format.as_deref() == Some("pcm16") && media.ext.value(OWN, NO_RATE).is_none();
    let rate = media.facts.sample_rate_hz;
    let rate = rate.or_else(|| mime.as_deref().filter(|_| lacks_rate).and_then(rate_of));
    hints::put(inner, "sample_rate", json!(rate));
    format.and_then(|format| mime_of_audio_format(&format, rate))
}

/// The short name of an audio type, without its parameters.
fn audio_word(mime: &str) -> String {
    let bare = mime.split(';').next().unwrap_or_default();
    if bare.eq_ignore_ascii_case("audio/L16") {
        return String::from("pcm16");
    }
    let same = |word: &&&str| mime_of_audio_format(word, None).as_deref() == Some(bare);
    let word = AUDIO_WORDS.iter().find(same).copied();
    String::from(word.unwrap_or_else(|| bare.rsplit('/').next().unwrap_or(bare)))
}

/// The `rate=` parameter of a media type.
fn rate_of(mime: &str) -> Option<u64> {
    mime.split(';')
        .find_map(|parameter| parameter.trim().strip_prefix("rate="))?
        .parse()
        .ok()
}
