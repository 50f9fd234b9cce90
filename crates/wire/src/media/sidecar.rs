//! Fields that a form does not have are carried in one extension object with canonical names. An object that
//! would not be encoded identically again is foreign and preserved like any unknown field.

use ir::media::{Checksum, MediaFacts, MediaHints};
use ir::{Fields, Map, Media, MediaKind};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(super) const KEY: &str = "x-media";

/// What a form encodes natively: fields by their canonical names, and the kind and type that follow from
/// them.
pub(super) struct NativeFields<'a> {
    pub(super) fields: &'a [&'a str],
    pub(super) kind: MediaKind,
    pub(super) mime: Option<&'a str>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Sidecar {
    #[serde(skip_serializing_if = "Option::is_none")]
    mime: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    media_kind: Option<MediaKind>,
    #[serde(skip_serializing_if = "is_default")]
    facts: MediaFacts,
    #[serde(skip_serializing_if = "is_default")]
    hints: MediaHints,
    #[serde(skip_serializing_if = "Option::is_none")]
    text_fallback: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation_params: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    checksum: Option<Checksum>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Sidecar {
    /// All fields except the bytes.
    fn of(media: &Media) -> Self {
        Self {
            mime: media.mime.clone(),
            media_kind: Some(media.kind),
            facts: media.facts.clone(),
            hints: media.hints.clone(),
            text_fallback: media.text_fallback.clone(),
            expires_at: media.expires_at.clone(),
            generation_params: media.generation.clone(),
            checksum: media.checksum.clone(),
        }
    }

    fn restore(self, media: &mut Media) {
        media.mime = self.mime;
        media.kind = self.media_kind.unwrap_or(media.kind);
        media.facts = self.facts;
        media.hints = self.hints;
        media.text_fallback = self.text_fallback;
        media.expires_at = self.expires_at;
        media.generation = self.generation_params;
        media.checksum = self.checksum;
    }
}

pub(super) fn write(media: &Media, plain: &NativeFields<'_>) -> Map {
    let mut side = Sidecar::of(media);
    side.mime = side.mime.filter(|mime| plain.mime != Some(mime.as_str()));
    side.media_kind = side.media_kind.filter(|kind| *kind != plain.kind);
    let Ok(Value::Object(mut map)) = serde_json::to_value(side) else {
        return Map::new();
    };
    for field in plain.fields {
        remove(&mut map, field);
    }
    map
}

fn remove(map: &mut Map, field: &str) {
    let Some((group, key)) = field.split_once('/') else {
        map.shift_remove(field);
        return;
    };
    if let Some(Value::Object(inner)) = map.get_mut(group) {
        inner.shift_remove(key);
        if inner.is_empty() {
            map.shift_remove(group);
        }
    }
}

/// Removes the object if it equals the output of [`write()`].
pub(super) fn read(fields: &mut Fields, media: &mut Media, plain: &NativeFields<'_>) {
    let Some(Value::Object(map)) = fields.peek(KEY) else {
        return;
    };
    let map = map.clone();
    let before = Sidecar::of(media);
    let fits = !map.is_empty() && apply(&map, media).is_some() && write(media, plain) == map;
    if fits {
        fields.take(KEY);
    } else {
        before.restore(media);
    }
}

fn apply(map: &Map, media: &mut Media) -> Option<()> {
    let side: Sidecar = serde_json::from_value(Value::Object(map.clone())).ok()?;
    overlay(&mut media.facts, map.get("facts"))?;
    overlay(&mut media.hints, map.get("hints"))?;
    if side.mime.is_some() {
        media.mime = side.mime;
    }
    if let Some(kind) = side.media_kind {
        media.kind = kind;
    }
    for (slot, value) in [
        (&mut media.text_fallback, side.text_fallback),
        (&mut media.expires_at, side.expires_at),
    ] {
        if value.is_some() {
            *slot = value;
        }
    }
    if side.generation_params.is_some() {
        media.generation = side.generation_params;
    }
    if side.checksum.is_some() {
        media.checksum = side.checksum;
    }
    Some(())
}

fn overlay<T: Serialize + DeserializeOwned>(slot: &mut T, more: Option<&Value>) -> Option<()> {
    let Some(more) = more else { return Some(()) };
    let Ok(Value::Object(mut all)) = serde_json::to_value(&*slot) else {
        return None;
    };
    for (key, value) in more.as_object()? {
        all.insert(key.clone(), value.clone());
    }
    *slot = serde_json::from_value(Value::Object(all)).ok()?;
    Some(())
}
