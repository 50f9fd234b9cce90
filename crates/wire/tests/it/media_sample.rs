//! Media of every kind and source, for laws that hold for all of them.

use ir::media::{Base64, Checksum, MediaFacts, MediaHints, StoredRef, VideoFrame};
use ir::{Dialect, Media, MediaId, MediaKind, MediaSource};
use proptest::prelude::*;
use serde_json::json;
use wire::media::DIALECTS;

fn word() -> impl Strategy<Value = Option<String>> {
    prop::option::of("[a-z é$]{0,6}")
}

fn small() -> impl Strategy<Value = Option<u64>> {
    prop::option::of(0_u64..5000)
}

fn source() -> impl Strategy<Value = MediaSource> {
    let foreign = (prop::sample::select(DIALECTS), "[a-z]{1,6}").prop_map(|(dialect, text)| {
        let text = match dialect {
            Dialect::Cognitive => format!("upl_{text}"),
            Dialect::MediaRef => format!("sms+file://{text}"),
            Dialect::HarmonySchema => format!("media:///{text}"),
            _ => text,
        };
        MediaSource::Stored(StoredRef::Foreign { dialect, text })
    });
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40)
            .prop_map(|bytes| MediaSource::Inline(Base64::from_bytes(&bytes))),
        any::<u128>().prop_map(|bits| MediaSource::Stored(StoredRef::Id(MediaId::new(bits)))),
        foreign,
        "https://[a-z]{1,5}\\.example/[a-z]{1,5}\\.(png|wav|mp4|bin)".prop_map(MediaSource::Remote),
        "/[a-z]{1,5}\\.(png|wav)".prop_map(MediaSource::LocalFile),
    ]
}

fn facts() -> impl Strategy<Value = MediaFacts> {
    (
        small(),
        word(),
        small(),
        small(),
        small(),
        small(),
        small(),
        small(),
    )
        .prop_map(
            |(size_bytes, sha256, width, height, duration_ms, sample_rate_hz, channels, pages)| MediaFacts {
                size_bytes,
                sha256,
                width,
                height,
                duration_ms,
                sample_rate_hz,
                channels,
                pages,
            },
        )
}

fn hints() -> impl Strategy<Value = MediaHints> {
    let frame = (word(), small(), small()).prop_map(|(video_id, seconds, frame_index)| VideoFrame {
        video_id,
        timestamp_sec: seconds.map(Into::into),
        frame_index,
    });
    let frame = frame.prop_map(|frame| (frame != VideoFrame::default()).then_some(frame));
    (word(), small(), word(), small(), frame).prop_map(|(detail, rotation, filename, index, video_frame)| {
        MediaHints {
            detail,
            rotation: rotation.map(Into::into),
            filename,
            index,
            video_frame,
        }
    })
}

const MIMES: [&str; 9] = [
    "image/png",
    "image/svg+xml",
    "audio/wav",
    "audio/amr",
    "audio/L16;rate=16000;channels=2",
    "video/mp4",
    "application/pdf",
    "application/octet-stream",
    "text/plain",
];
const KINDS: [MediaKind; 5] = [
    MediaKind::Image,
    MediaKind::Audio,
    MediaKind::Video,
    MediaKind::Document,
    MediaKind::Other,
];

prop_compose! {
    pub(crate) fn media()(
        source in source(),
        mime in prop::option::of(prop::sample::select(&MIMES[..])),
        kind in prop::option::of(prop::sample::select(&KINDS[..])),
        facts in facts(),
        hints in hints(),
        text_fallback in word(),
        expires_at in word(),
        generation in prop::option::of(Just(json!({"model": "m"}))),
        checksum in prop::option::of(Just(Checksum { algorithm: "md5".into(), value: "00".into() })),
    ) -> Media {
        let mut media = Media::new(source, mime.map(String::from));
        media.kind = kind.unwrap_or(media.kind);
        Media { facts, hints, text_fallback, expires_at, generation, checksum, ..media }
    }
}
