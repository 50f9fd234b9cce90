//! What must never stand in the content of a conversation: where the bytes lie, how to get at them, and a
//! version of the schema. Content is kept for good, and these are the store's own affair.

use serde_json::Value;

use crate::media::presigned;
use crate::media::error::ConversionError;

const FORBIDDEN: &[(&str, &str)] = &[
    ("bucket", "where media lies is the store's affair"),
    ("key", "where media lies is the store's affair"),
    ("presigned_url", "a signed address is never kept"),
    ("schema_version", "content carries no version"),
    ("content_version", "content carries no version"),
    ("content_schema_version", "content carries no version"),
];

pub(super) fn check(content: &Value) -> Result<(), ConversionError> {
    check_keys(content)?;
    match presigned::find(content, "") {
        Some(pointer) => Err(ConversionError::unsupported(&pointer, "a signed address is never kept")),
        None => Ok(()),
    }
}

/// The names alone. A text that somebody wrote may quote any address.
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
