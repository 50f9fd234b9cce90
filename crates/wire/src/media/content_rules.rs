//! Fields that conversation content must not contain: storage locations, signed URLs, and schema versions.
//! Content is stored permanently, and these belong to the media store.

use serde_json::Value;

use crate::media::error::ConversionError;
use crate::media::presigned;

const FORBIDDEN: &[(&str, &str)] = &[
    ("bucket", "storage locations are not part of content"),
    ("key", "storage locations are not part of content"),
    ("presigned_url", "signed URLs are not stored"),
    ("schema_version", "content has no version field"),
    ("content_version", "content has no version field"),
    ("content_schema_version", "content has no version field"),
];

pub(super) fn check(content: &Value) -> Result<(), ConversionError> {
    check_keys(content)?;
    match presigned::find(content, "") {
        Some(pointer) => Err(ConversionError::unsupported(
            &pointer,
            "signed URLs are not stored",
        )),
        None => Ok(()),
    }
}

/// Checks key names only. Text written by users may quote any URL.
pub(crate) fn check_keys(content: &Value) -> Result<(), ConversionError> {
    keys(content, "")
}

fn keys(value: &Value, pointer: &str) -> Result<(), ConversionError> {
    match value {
        Value::Array(list) => {
            for (at, inner) in list.iter().enumerate() {
                keys(inner, &format!("{pointer}/{at}"))?;
            }
        }
        Value::Object(map) => {
            for (key, inner) in map {
                let place = format!("{pointer}/{}", ir::adaptation::escape(key));
                if let Some((_, reason)) = FORBIDDEN.iter().find(|(name, _)| name == key) {
                    return Err(ConversionError::unsupported(&place, *reason));
                }
                keys(inner, &place)?;
            }
        }
        _ => {}
    }
    Ok(())
}
