//! Addresses that carry their own permission and soon expire. They are made on the way out and never
//! kept: what is written to disk names stored media by its id.

use ir::{Media, MediaSource};
use serde_json::Value;

use crate::media::error::{RequiredAction, ConversionError};

/// Names of query parameters that only a signed address has. Clouds differ; these are theirs.
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

/// Whether the media may be written to disk as it is. A signed address or a local path is no lasting name.
pub fn may_persist(media: &Media) -> Result<(), ConversionError> {
    let refuse = |need| Err(ConversionError::needs(ir::Dialect::ContentBlock, "", need));
    match &media.source {
        MediaSource::Remote(url) if is_presigned(url) => refuse(RequiredAction::Fetch),
        MediaSource::LocalFile(_) => refuse(RequiredAction::Read),
        _ => Ok(()),
    }
}

/// The place of the first text anywhere in `value` that is a signed address.
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
