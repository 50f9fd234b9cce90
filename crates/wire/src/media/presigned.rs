//! Signed URLs: they grant access and expire soon. They are generated on output and never stored; stored
//! documents reference media by id.

use ir::{Media, MediaSource};
use serde_json::Value;

use crate::media::error::{ConversionError, RequiredAction};

/// Query parameter names of signed URLs, per cloud vendor.
const SIGNATURES: &[&str] = &[
    "x-amz-signature",
    "x-amz-credential",
    "x-goog-signature",
    "x-goog-credential",
    "x-oss-signature",
    "x-cos-security-token",
    "x-obs-signature",
    "x-tos-signature",
    "q-signature",
    "ossaccesskeyid",
    "awsaccesskeyid",
    "googleaccessid",
    "key-pair-id",
    "signature",
    "sig",
];

pub fn is_presigned(url: &str) -> bool {
    let Some((head, query)) = url.split_once('?') else {
        return false;
    };
    let query = query.split('#').next().unwrap_or_default();
    head.contains("://")
        && query.split(['&', ';']).any(|pair| {
            let name = pair.split('=').next().unwrap_or_default();
            SIGNATURES.iter().any(|known| known.eq_ignore_ascii_case(name))
        })
}

/// Whether the media may be persisted as is. A signed URL or a local path is not a permanent name.
pub fn may_persist(media: &Media) -> Result<(), ConversionError> {
    let refuse = |need| Err(ConversionError::needs(ir::Dialect::ContentBlock, "", need));
    match &media.source {
        MediaSource::Remote(url) if is_presigned(url) => refuse(RequiredAction::Fetch),
        MediaSource::LocalFile(_) => refuse(RequiredAction::Read),
        _ => Ok(()),
    }
}

/// The pointer of the first text in `value` that is a signed URL.
pub(super) fn find(value: &Value, pointer: &str) -> Option<String> {
    match value {
        Value::String(text) => text
            .split_whitespace()
            .any(is_presigned)
            .then(|| String::from(pointer)),
        Value::Array(list) => list
            .iter()
            .enumerate()
            .find_map(|(at, inner)| find(inner, &format!("{pointer}/{at}"))),
        Value::Object(map) => map.iter().find_map(|(key, inner)| {
            let step = ir::adaptation::escape(key);
            find(inner, &format!("{pointer}/{step}"))
        }),
        _ => None,
    }
}
