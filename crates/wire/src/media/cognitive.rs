//! `MediaInput` and `MediaOutput` of the specification. Both have the same sources; an output also has its
//! size, its duration and its generation parameters. Fields that begin with `x-` are extensions: they carry
//! fields of other dialects that this one does not have.

use ir::media::{Base64, StoredRef};
use ir::{Action, Dialect, Fields, Ledger, Map, Media, MediaKind, MediaSource};
use serde_json::{Value, json};

use crate::media::context::{ConversionContext, Locality};
use crate::media::error::{ConversionError, RequiredAction};
use crate::media::hints;
use crate::media::sidecar::{self, NativeFields};

const OWN: Dialect = Dialect::Cognitive;
const HINTS: &str = "x-harmony";
/// Note: the source was a `MediaOutput`.
const OUTPUT: &str = "$output";

/// Fields that an output has natively. The checksum is last, because an upload has none.
const FIELDS: [&str; 11] = [
    "mime",
    "hints/detail",
    "hints/rotation",
    "hints/index",
    "hints/video_frame",
    "facts/width",
    "facts/height",
    "facts/duration_ms",
    "expires_at",
    "generation_params",
    "checksum",
];
const INPUT_FIELDS: [&str; 6] = [
    "mime",
    "hints/detail",
    "hints/rotation",
    "hints/index",
    "hints/video_frame",
    "checksum",
];

pub(super) fn decode(mut fields: Fields, setting: &ConversionContext<'_>) -> Result<Media, ConversionError> {
    let word = fields.string("type").unwrap_or_default();
    let key = match word.as_str() {
        "url" => "url",
        "base64" => "data",
        "file" => "path",
        "upload_ref" => "upload_id",
        _ => {
            return Err(ConversionError::malformed(
                "/type",
                "`type` must be url, base64, file or upload_ref",
            ));
        }
    };
    if word == "file" && setting.place != Locality::Local {
        return Err(ConversionError::unsupported(
            "",
            "local files are read only by a local runtime",
        ));
    }
    let missing = || ConversionError::malformed("", format!("media of type {word} has no `{key}`"));
    let text = fields.string(key).ok_or_else(missing)?;
    let source = match word.as_str() {
        "url" => MediaSource::Remote(text),
        "base64" => MediaSource::Inline(Base64::from_text(text)),
        "file" => MediaSource::LocalFile(text),
        _ => MediaSource::Stored(StoredRef::from_upload(&text)),
    };
    let mime = fields.string("media_type");
    if word == "base64" && mime.is_none() {
        return Err(ConversionError::malformed(
            "",
            "media of type base64 has no `media_type`",
        ));
    }
    let mut media = Media::new(source, mime);
    media.facts.width = fields.u64("width");
    media.facts.height = fields.u64("height");
    media.facts.duration_ms = fields.u64("duration_ms");
    media.expires_at = fields.string("expires_at");
    if fields
        .peek("generation_params")
        .is_some_and(|value| !value.is_null())
    {
        media.generation = fields.take("generation_params");
    }
    if word != "upload_ref"
        && let Some(value) = fields.peek("checksum")
        && let Ok(checksum) = serde_json::from_value(value.clone())
    {
        media.checksum = Some(checksum);
        fields.take("checksum");
    }
    if media.facts != ir::media::MediaFacts::default() || has_output_fields(&media) {
        media.ext.set(OWN, OUTPUT, true);
    }
    hints::inside(&mut fields, HINTS, |inner| {
        hints::read_view(inner, &mut media.hints);
        hints::read_place(inner, &mut media.hints);
    });
    let mime = media.mime.clone();
    let plain = plain(&media, mime.as_deref());
    sidecar::read(&mut fields, &mut media, &plain);
    media.ext.extend(OWN, fields.rest());
    Ok(media)
}

pub(super) fn encode(
    media: &Media,
    pointer: &str,
    setting: &ConversionContext<'_>,
    ledger: &mut Ledger,
) -> Result<Map, ConversionError> {
    let mut map = Map::new();
    let mut source = |word: &str, key: &str, text: &str| {
        map.insert(String::from("type"), json!(word));
        map.insert(String::from(key), json!(text));
    };
    let mut mime = media.mime.clone();
    match &media.source {
        MediaSource::Inline(data) => {
            source("base64", "data", data.as_str());
            mime = Some(mime.unwrap_or_else(|| required_mime(media, pointer, ledger)));
        }
        MediaSource::Remote(url) => source("url", "url", url),
        MediaSource::Stored(stored) => {
            let id = setting.spell(stored, OWN, ir::MediaId::upload);
            let id = id.ok_or_else(|| ConversionError::needs(OWN, pointer, RequiredAction::Alias))?;
            source("upload_ref", "upload_id", &id);
        }
        MediaSource::LocalFile(path) if setting.place == Locality::Local => source("file", "path", path),
        MediaSource::LocalFile(_) => return Err(ConversionError::needs(OWN, pointer, RequiredAction::Read)),
        MediaSource::Handle(_) => return Err(ConversionError::needs(OWN, pointer, RequiredAction::Load)),
        MediaSource::ProviderFile { .. } => {
            return Err(ConversionError::unsupported(
                pointer,
                "only its provider can read this file",
            ));
        }
    }
    let plain = plain(media, mime.as_deref());
    hints::put(&mut map, "media_type", json!(mime));
    for field in plain.fields {
        let (key, value) = match *field {
            "facts/width" => ("width", json!(media.facts.width)),
            "facts/height" => ("height", json!(media.facts.height)),
            "facts/duration_ms" => ("duration_ms", json!(media.facts.duration_ms)),
            "expires_at" => ("expires_at", json!(media.expires_at)),
            "checksum" => ("checksum", json!(media.checksum)),
            _ => continue,
        };
        hints::put(&mut map, key, value);
    }
    if let (Some(value), true) = (&media.generation, plain.fields.contains(&"generation_params")) {
        map.insert(String::from("generation_params"), value.clone());
    }
    let mut carried = Map::new();
    hints::write_view(&media.hints, &mut carried);
    hints::write_place(&media.hints, &mut carried);
    hints::put(&mut map, HINTS, Value::Object(carried));
    hints::put(
        &mut map,
        sidecar::KEY,
        Value::Object(sidecar::write(media, &plain)),
    );
    media.ext.restore(OWN, &mut map);
    ledger.foreign(pointer, &media.ext, OWN);
    Ok(map)
}

/// Inline bytes require a type. If none is declared, it is detected from the first bytes, else generic.
fn required_mime(media: &Media, pointer: &str, ledger: &mut Ledger) -> String {
    let mime = media
        .mime_or_sniffed()
        .unwrap_or_else(|| String::from("application/octet-stream"));
    let reason = format!("{OWN} requires a media type and none was declared");
    ledger.note(format!("{pointer}/mime"), Action::Added, reason);
    mime
}

fn has_output_fields(media: &Media) -> bool {
    media.generation.is_some() || media.expires_at.is_some()
}

fn plain<'a>(media: &Media, mime: Option<&'a str>) -> NativeFields<'a> {
    let output = has_output_fields(media) || media.ext.value(OWN, OUTPUT).is_some();
    let stored = matches!(media.source, MediaSource::Stored(_));
    let all: &[&str] = if output { &FIELDS } else { &INPUT_FIELDS };
    let fields = match all.split_last() {
        Some((_, rest)) if stored => rest,
        _ => all,
    };
    NativeFields {
        fields,
        kind: mime.map_or(MediaKind::Other, MediaKind::of_mime),
        mime,
    }
}
