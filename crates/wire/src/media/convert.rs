//! One set of functions over the four media forms. The modules of the forms do not depend on each other.

use ir::media::Base64;
use ir::{Action, Dialect, Fields, Ledger, Media, MediaSource};
use serde_json::Value;

use crate::media::context::ConversionContext;
use crate::media::error::ConversionError;
use crate::media::{cognitive, content_block, harmony, media_ref};

/// The dialects with a standalone media form.
pub const DIALECTS: &[Dialect] = &[
    Dialect::Cognitive,
    Dialect::MediaRef,
    Dialect::ContentBlock,
    Dialect::HarmonySchema,
];

pub fn decode(
    dialect: Dialect,
    value: Value,
    setting: &ConversionContext<'_>,
) -> Result<Media, ConversionError> {
    let Value::Object(map) = value else {
        return Err(ConversionError::malformed("", "media must be an object"));
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

/// Encodes media. What the dialect does not support is recorded in the ledger.
pub fn encode(
    dialect: Dialect,
    media: &Media,
    setting: &ConversionContext<'_>,
    ledger: &mut Ledger,
) -> Result<Value, ConversionError> {
    encode_at(dialect, media, "", setting, ledger)
}

/// The same for media at `pointer` of a larger document.
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

/// Normalizes base64 to the standard alphabet. Text that is not base64 is left to the code that validates the
/// bytes.
pub(crate) fn normalise(media: &mut Media, pointer: &str, ledger: &mut Ledger) {
    if let MediaSource::Inline(data) = &mut media.source
        && !data.is_canonical()
        && let Ok(bytes) = data.decode()
    {
        *data = Base64::from_bytes(&bytes);
        ledger.note(
            format!("{pointer}/data"),
            Action::Renamed,
            "normalized to standard base64",
        );
    }
}

fn no_form(dialect: Dialect) -> ConversionError {
    ConversionError::unsupported("", format!("{dialect} has no standalone media form"))
}
