//! One set of functions over the four forms. The forms' own files know nothing of each other.

use ir::media::Base64;
use ir::{Action, Dialect, Fields, Ledger, Media, MediaSource};
use serde_json::Value;

use crate::media::error::ConversionError;
use crate::media::context::ConversionContext;
use crate::media::{cognitive, content_block, harmony, media_ref};

/// The dialects that have a form for media alone.
pub const DIALECTS: &[Dialect] = &[
    Dialect::Cognitive,
    Dialect::MediaRef,
    Dialect::ContentBlock,
    Dialect::HarmonySchema,
];

pub fn decode(dialect: Dialect, value: Value, setting: &ConversionContext<'_>) -> Result<Media, ConversionError> {
    let Value::Object(map) = value else {
        return Err(ConversionError::malformed("", "media is an object"));
    };
    let fields = Fields::new(map);
    match dialect {
        Dialect::Cognitive => cognitive::decode(fields, setting),
        Dialect::MediaRef | Dialect::Canonical => media_ref::decode(fields),
        Dialect::ContentBlock => content_block::decode(fields),
        Dialect::HarmonySchema => harmony::decode(fields),
        _ => Err(no_form(dialect)),
    }
}

/// Writes media. Whatever the dialect cannot say is booked in the ledger.
pub fn encode(
    dialect: Dialect,
    media: &Media,
    setting: &ConversionContext<'_>,
    ledger: &mut Ledger,
) -> Result<Value, ConversionError> {
    encode_at(dialect, media, "", setting, ledger)
}

/// The same for media that stands at `pointer` of a larger document.
pub(crate) fn encode_at(
    dialect: Dialect,
    media: &Media,
    pointer: &str,
    setting: &ConversionContext<'_>,
    ledger: &mut Ledger,
) -> Result<Value, ConversionError> {
    let map = match dialect {
        Dialect::Cognitive => cognitive::encode(media, pointer, setting, ledger)?,
        Dialect::MediaRef | Dialect::Canonical => media_ref::encode(media, pointer, setting, ledger)?,
        Dialect::ContentBlock => content_block::encode(media, pointer, setting, ledger)?,
        Dialect::HarmonySchema => harmony::encode(media, pointer, setting, ledger)?,
        _ => return Err(no_form(dialect)),
    };
    Ok(Value::Object(map))
}

pub fn convert(
    from: Dialect,
    to: Dialect,
    value: Value,
    setting: &ConversionContext<'_>,
    ledger: &mut Ledger,
) -> Result<Value, ConversionError> {
    let mut media = decode(from, value, setting)?;
    if from != to {
        normalise(&mut media, "", ledger);
    }
    encode(to, &media, setting, ledger)
}

/// Brings base64 into its one standard spelling. Text that is not base64 at all is left to those who check
/// the bytes.
pub(crate) fn normalise(media: &mut Media, pointer: &str, ledger: &mut Ledger) {
    if let MediaSource::Inline(data) = &mut media.source
        && !data.is_canonical()
        && let Ok(bytes) = data.decode()
    {
        *data = Base64::from_bytes(&bytes);
        ledger.note(
            format!("{pointer}/data"),
            Action::Renamed,
            "the same bytes in the standard spelling of base64",
        );
    }
}

fn no_form(dialect: Dialect) -> ConversionError {
    ConversionError::unsupported("", format!("{dialect} has no form for media alone"))
}
