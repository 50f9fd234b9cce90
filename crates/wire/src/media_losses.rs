//! Media fields other than bytes and type. A dialect lists the fields that it supports; the others are
//! recorded as losses, field by field.

use ir::{Dialect, Error, Ledger, Media, MediaSource};
use serde_json::Value;

/// Records every field of `media` that `target` does not support. `carried` lists field names of the
/// canonical form, such as `hints/detail`.
pub(crate) fn book(media: &Media, pointer: &str, target: Dialect, carried: &[&str], ledger: &mut Ledger) {
    let reference = media.to_reference();
    for group in ["facts", "hints"] {
        for key in reference
            .get(group)
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(|map| map.keys())
        {
            let field = format!("{group}/{key}");
            if !carried.contains(&field.as_str()) {
                ledger.dropped(format!("{pointer}/{field}"), format!("not supported by {target}"));
            }
        }
    }
    // The type of inline media follows from its bytes; other sources do not show it.
    let elsewhere = !matches!(media.source, MediaSource::Inline(_));
    if elsewhere && media.mime.is_some() && !carried.contains(&"mime") {
        ledger.dropped(
            format!("{pointer}/mime"),
            format!("the type of media that is not inline is not supported by {target}"),
        );
    }
    for key in ["text_fallback", "expires_at", "generation_params", "checksum"] {
        if reference.contains_key(key) && !carried.contains(&key) {
            ledger.dropped(format!("{pointer}/{key}"), format!("not supported by {target}"));
        }
    }
    ledger.foreign(pointer, &media.ext, target);
}

/// Media that is not inline must be resolved to a form that a provider can read first.
pub(crate) fn unresolved(media: &Media, pointer: &str, target: Dialect) -> Error {
    let what = match &media.source {
        MediaSource::Inline(_) => "inline media of this kind",
        MediaSource::Stored(_) => "stored media",
        MediaSource::Handle(_) => "media outside of memory",
        MediaSource::Remote(_) => "media by address",
        MediaSource::LocalFile(_) => "a local file",
        MediaSource::ProviderFile { .. } => "another provider's file",
    };
    Error::invalid_request(format!(
        "{target} cannot carry {what} at {pointer}: resolve it first"
    ))
}
