//! The four hints that the Harmony Schema has fields for. The other forms use the same names.

use ir::media::{MediaHints, VideoFrame};
use ir::{Fields, Map};
use serde_json::{Value, json};

/// Their names in the canonical form.
pub(super) const FIELDS: [&str; 4] = [
    "hints/detail",
    "hints/rotation",
    "hints/index",
    "hints/video_frame",
];

/// How an image is displayed: detail and rotation.
pub(super) fn read_view(fields: &mut Fields, hints: &mut MediaHints) {
    hints.detail = fields.string("detail");
    hints.rotation = fields.number("rotation");
}

/// The position of the media: index and video frame.
pub(super) fn read_place(fields: &mut Fields, hints: &mut MediaHints) {
    hints.index = fields.u64("index");
    inside(fields, "video_metadata", |inner| {
        let frame = VideoFrame {
            video_id: inner.string("video_id"),
            timestamp_sec: inner.number("timestamp_sec"),
            frame_index: inner.u64("frame_index"),
        };
        hints.video_frame = (frame != VideoFrame::default()).then_some(frame);
    });
}

pub(super) fn write_view(hints: &MediaHints, map: &mut Map) {
    put(map, "detail", json!(hints.detail));
    put(map, "rotation", json!(hints.rotation));
}

pub(super) fn write_place(hints: &MediaHints, map: &mut Map) {
    put(map, "index", json!(hints.index));
    put(map, "video_metadata", json!(hints.video_frame));
}

/// Reads from an inner object and keeps its unknown fields. An empty object is preserved, because its
/// presence is information.
pub(super) fn inside(fields: &mut Fields, key: &str, read: impl FnOnce(&mut Fields)) {
    let there = fields.peek(key).and_then(Value::as_object);
    if there.is_none_or(Map::is_empty) {
        return;
    }
    if let Some(mut inner) = fields.object(key) {
        read(&mut inner);
        fields.keep(key, inner);
    }
}

/// Writes a value unless it is empty.
pub(super) fn put(map: &mut Map, key: &str, value: Value) {
    let empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
    if !empty {
        map.insert(String::from(key), value);
    }
}
