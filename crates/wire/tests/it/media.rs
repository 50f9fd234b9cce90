//! One media type, four forms: every example of the documents, and the laws between the forms.

use std::collections::BTreeMap;

use ir::media::{Base64, ForeignIds, StoredRef};
use ir::{Component, Dialect, Ledger, Media, MediaId, MediaKind, MediaSource};
use proptest::prelude::*;
use serde_json::{Value, json};
use wire::media::{
    ConversionContext, ConversionError, DIALECTS, Locality, RequiredAction, convert, decode, encode,
};

use crate::fixtures::{cases, disturb, disturbances};
use crate::media_sample::media;

fn here(aliases: &ForeignIds) -> ConversionContext<'_> {
    ConversionContext {
        place: Locality::Local,
        aliases,
    }
}

fn ledger() -> Ledger {
    Ledger::new(Component::Adapter)
}

/// Every piece of media in the examples of the documents, and one of each form that they name.
pub(crate) fn examples() -> Vec<(Dialect, Value)> {
    let data = "iVBORw0KGgoAAAANSUhEUgAAAAUA...";
    let sum = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    let id = "018f6e5c-0000-7000-8000-00000000abcd";
    let cognitive = [
        json!({"type": "url", "url": "https://example.com/image.jpg", "media_type": "image/jpeg"}),
        json!({"type": "base64", "media_type": "image/png", "data": data}),
        json!({"type": "file", "path": "/path/to/image.jpg"}),
        json!({"type": "upload_ref", "upload_id": "upl_abc123", "media_type": "video/mp4"}),
        json!({"type": "base64", "media_type": "image/png", "data": data, "width": 1024, "height": 1024,
            "generation_params": {"model": "dall-e-3", "quality": "hd", "style": "natural"}}),
        json!({"type": "url", "media_type": "image/png", "url": "https://cdn.example.com/generated/abc123.png",
            "expires_at": "2026-02-04T12:00:00Z", "width": 1024, "height": 1024}),
        json!({"type": "base64", "media_type": "image/png", "data": data,
            "checksum": {"algorithm": "sha256", "value": sum}}),
        json!({"type": "url", "url": "https://example.com/receipt.jpg"}),
        json!({"type": "base64", "media_type": "audio/wav", "data": "UklGRgAAAABXQVZF",
            "x-harmony": {"index": 3}, "x-media": {"facts": {"sample_rate_hz": 8000}, "text_fallback": "a cough"}}),
    ];
    let media_ref = [
        json!({"kind": "inline_base64", "mime": "audio/wav", "data": "..."}),
        json!({"kind": "sms_file", "uri": "sms+file://<id>", "mime": "image/png"}),
        json!({"kind": "http_url", "url": "https://...", "mime": "image/jpeg"}),
        json!({"kind": "sms_file", "uri": "sms+file://01JFK...ABCD", "mime": "audio/wav"}),
        json!({"kind": "sms_file", "uri": "sms+file://01JFK...WXYZ", "mime": "image/png"}),
        json!({"kind": "sms_file", "uri": "sms+file://01J...", "mime": "image/jpeg"}),
        json!({"kind": "sms_file", "uri": "smsfile://01JFKABCDEFGHJKMNPQRSTVWXY", "mime": "image/jpeg"}),
        json!({"kind": "http_url", "url": "u", "media_kind": "image", "mime_trust": "verified",
            "hints": {"detail": "low"}, "ext": {"cognitive": {"y": 2}}}),
    ];
    let content_block = [
        json!({"type": "image", "media_id": id, "text_fallback": "a red car",
            "metadata": {"mime_type": "image/png", "dimensions": {"width": 3, "height": 4}, "detail": "low"}}),
        json!({"type": "audio", "media_id": id, "text_fallback": "", "metadata": {"duration": 3}}),
        json!({"type": "document", "media_id": "of another house", "text_fallback": "t"}),
        json!({"type": "video", "media_id": id, "metadata": {}}),
    ];
    let harmony = [
        json!({"type": "image_url", "image_url": {"url": "https://s3.amazonaws.com/bucket/invoice_scan_01.jpg",
            "detail": "high", "rotation": 0}}),
        json!({"type": "image_url", "image_url": {"url": "..."},
            "video_metadata": {"video_id": "vid_abc", "timestamp_sec": 12.5, "frame_index": 300}}),
        json!({"type": "input_audio",
            "input_audio": {"data": "base64_string...", "format": "wav", "sample_rate": 24000}}),
        json!({"type": "image_url", "image_url": {"url": "https://.../chart_temp.png"}}),
        json!({"type": "image_url", "image_url": {"url": "https://.../frame_10s.jpg", "detail": "low"},
            "video_metadata": {"timestamp_sec": 10.0}}),
        json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}),
        json!({"type": "image_url", "image_url": {"url": "DATA:;base64,iVBORw0KGgo="}, "index": 1}),
        json!({"type": "image_url", "image_url": {"url": format!("media:///{id}")}}),
        json!({"type": "image_url", "image_url": {"url": "media:///other"}}),
        json!({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "pcm16"}}),
        json!({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "pcm16", "sample_rate": 16000}}),
        json!({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "amr"},
            "x-media": {"mime": "audio/AMR"}}),
        json!({"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBERi0=", "filename": "a.pdf"}}),
        json!({"type": "file", "file": {"file_data": "JVBERi0="}}),
        json!({"type": "file", "file": {"file_id": "file-1"}}),
    ];
    let all = [
        (Dialect::Cognitive, cognitive.to_vec()),
        (Dialect::MediaRef, media_ref.to_vec()),
        (Dialect::ContentBlock, content_block.to_vec()),
        (Dialect::HarmonySchema, harmony.to_vec()),
    ];
    all.into_iter()
        .flat_map(|(dialect, list)| list.into_iter().map(move |value| (dialect, value)))
        .collect()
}

#[test]
fn l1_examples_roundtrip() {
    let aliases = ForeignIds::default();
    for (dialect, value) in examples() {
        let mut ledger = ledger();
        let again = convert(dialect, dialect, value.clone(), &here(&aliases), &mut ledger).unwrap();
        assert_eq!(again, value, "{dialect}");
        assert_eq!(ledger.entries(), [], "{dialect}");
    }
}

/// A store, a web server and a disk in one.
#[derive(Default)]
struct Shelf {
    blobs: BTreeMap<MediaId, Vec<u8>>,
    aliases: ForeignIds,
}

impl Shelf {
    fn bytes(&self, media: &Media) -> Vec<u8> {
        match &media.source {
            MediaSource::Inline(data) => data.decode().unwrap_or_else(|_| data.as_str().into()),
            MediaSource::Stored(StoredRef::Id(id)) => {
                self.blobs.get(id).cloned().unwrap_or_else(|| id.uuid().into())
            }
            MediaSource::Stored(StoredRef::Foreign { dialect, text }) => {
                match self.aliases.id(*dialect, text) {
                    Some(id) => self.bytes(&Media::new(MediaSource::Stored(StoredRef::Id(id)), None)),
                    None => text.as_bytes().to_vec(),
                }
            }
            MediaSource::Remote(text) | MediaSource::LocalFile(text) => text.as_bytes().to_vec(),
            MediaSource::ProviderFile { id, .. } => id.as_bytes().to_vec(),
            MediaSource::Handle(_) => unreachable!("no document names it"),
        }
    }

    fn put(&mut self, bytes: Vec<u8>) -> MediaId {
        let id = MediaId::new(0x0198_0000_0000_7000_8000_0000_0000_0000 + self.blobs.len() as u128);
        self.blobs.insert(id, bytes);
        id
    }

    fn fulfil(&mut self, media: &mut Media, need: RequiredAction) {
        let bytes = self.bytes(media);
        media.source = match (need, &media.source) {
            (RequiredAction::Load, _) => MediaSource::Inline(Base64::from_bytes(&bytes)),
            (RequiredAction::Alias, MediaSource::Stored(StoredRef::Foreign { dialect, text })) => {
                let (dialect, text) = (*dialect, text.clone());
                let id = self.put(bytes);
                self.aliases.insert(dialect, &text, id);
                media.source.clone()
            }
            _ => MediaSource::Stored(StoredRef::Id(self.put(bytes))),
        };
    }

    /// Encodes the media after performing the required actions.
    fn encode(&mut self, dialect: Dialect, media: &mut Media) -> Result<(Value, Ledger), ConversionError> {
        for _ in 0..3 {
            let mut ledger = ledger();
            match encode(dialect, media, &here(&self.aliases.clone()), &mut ledger) {
                Err(ConversionError::NeedsStore { need, .. }) => self.fulfil(media, need),
                other => return other.map(|value| (value, ledger)),
            }
        }
        panic!("{dialect} is never content with {media:?}");
    }
}

/// Every known field is preserved.
fn kept(before: &impl serde::Serialize, after: &impl serde::Serialize) -> bool {
    let (before, after) = (
        serde_json::to_value(before).unwrap(),
        serde_json::to_value(after).unwrap(),
    );
    let mut known = before.as_object().unwrap().iter();
    known.all(|(key, value)| after.get(key) == Some(value))
}

proptest! {
    #![proptest_config(cases(384))]

    #[test]
    fn l1_mutated_examples_roundtrip(changes in disturbances(), pick: prop::sample::Index) {
        let examples = examples();
        let (dialect, value) = pick.get(&examples);
        let mut value = value.clone();
        for change in &changes {
            disturb(&mut value, change);
        }
        let aliases = ForeignIds::default();
        let Ok(media) = decode(*dialect, value.clone(), &here(&aliases)) else {
            return Err(TestCaseError::reject("not media of the dialect"));
        };
        let again = encode(*dialect, &media, &here(&aliases), &mut ledger()).unwrap();
        prop_assert_eq!(again, value);
    }

    #[test]
    fn l1_encoding_roundtrips(mut media in media()) {
        let mut shelf = Shelf::default();
        for dialect in DIALECTS {
            let (value, _) = shelf.encode(*dialect, &mut media).unwrap();
            let again = decode(*dialect, value.clone(), &here(&shelf.aliases)).unwrap();
            let again = encode(*dialect, &again, &here(&shelf.aliases), &mut ledger()).unwrap();
            prop_assert_eq!(again, value);
        }
    }

    /// An unknown field is carried or recorded as a loss.
    #[test]
    fn l2_no_silent_loss(
        at: usize,
        pick: prop::sample::Index,
        target in prop::sample::select(DIALECTS),
    ) {
        let examples = examples();
        let (dialect, value) = pick.get(&examples);
        let mut value = value.clone();
        disturb(&mut value, &(at, 2, json!("canary!")));
        prop_assume!(value.to_string().contains("canary"));
        let aliases = ForeignIds::default();
        let mut book = ledger();
        let Ok(written) = convert(*dialect, target, value, &here(&aliases), &mut book) else {
            return Err(TestCaseError::reject("the target does not support this media"));
        };
        let carried = written.to_string().contains("canary");
        prop_assert!(carried || book.losses().any(|loss| loss.pointer.starts_with("/ext/")), "{written}");
    }

    /// With a store, any chain of conversions preserves bytes and fields.
    #[test]
    fn l3_conversion_chains_preserve_bytes_and_fields(
        media in media(),
        way in prop::collection::vec(prop::sample::select(DIALECTS), 1..6),
    ) {
        let mut shelf = Shelf::default();
        let bytes = shelf.bytes(&media);
        let mut now = media.clone();
        for dialect in way {
            let (value, ledger) = shelf.encode(dialect, &mut now).unwrap();
            prop_assert_eq!(ledger.losses().count(), 0);
            now = decode(dialect, value, &here(&shelf.aliases)).unwrap();
            prop_assert_eq!(shelf.bytes(&now), &bytes[..]);
            prop_assert_eq!(&now.hints, &media.hints);
            prop_assert_eq!(&now.text_fallback, &media.text_fallback);
            prop_assert_eq!(&now.checksum, &media.checksum);
            prop_assert_eq!(&now.generation, &media.generation);
            prop_assert_eq!(&now.expires_at, &media.expires_at);
            prop_assert!(media.mime.is_none() || now.mime == media.mime, "{:?}", now.mime);
            prop_assert!(media.kind == MediaKind::Other || now.kind == media.kind, "{:?}", now.kind);
            prop_assert!(kept(&media.facts, &now.facts), "{:?}", now.facts);
        }
    }

    /// L4: conversions do not change bytes; base64 in another alphabet gives the same bytes.
    #[test]
    fn l4_bytes_are_unchanged(bytes: Vec<u8>, target in prop::sample::select(&[Dialect::MediaRef, Dialect::HarmonySchema][..])) {
        let canonical = Base64::from_bytes(&bytes);
        let odd: String = canonical.as_str().trim_end_matches('=').replace('+', "-").replace('/', "_");
        let aliases = ForeignIds::default();
        for text in [canonical.as_str(), &odd] {
            let value = json!({"type": "base64", "media_type": "image/png", "data": text});
            let mut book = ledger();
            let written = convert(Dialect::Cognitive, target, value, &here(&aliases), &mut book).unwrap();
            let media = decode(target, written, &here(&aliases)).unwrap();
            let MediaSource::Inline(data) = &media.source else { panic!("{media:?}") };
            prop_assert!(data.is_canonical());
            prop_assert_eq!(data.decode().unwrap(), &bytes[..]);
            prop_assert_eq!(book.entries().len(), usize::from(text != canonical.as_str()));
            prop_assert_eq!(book.losses().count(), 0);
        }
    }
}

#[test]
fn l5_local_files_require_a_local_runtime() {
    let aliases = ForeignIds::default();
    let server = ConversionContext {
        place: Locality::Server,
        aliases: &aliases,
    };
    let file = json!({"type": "file", "path": "/etc/passwd"});
    assert!(decode(Dialect::Cognitive, file.clone(), &server).is_err());
    let media = decode(Dialect::Cognitive, file.clone(), &here(&aliases)).unwrap();
    assert_eq!(
        encode(Dialect::Cognitive, &media, &here(&aliases), &mut ledger()),
        Ok(file)
    );
    for dialect in DIALECTS {
        let refused = encode(*dialect, &media, &server, &mut ledger()).unwrap_err();
        assert!(
            matches!(
                refused,
                ConversionError::NeedsStore {
                    need: RequiredAction::Read,
                    ..
                }
            ),
            "{dialect}"
        );
    }
    let reference = json!({"kind": "local_file", "path": "/etc/passwd", "mime": "text/plain"});
    assert!(decode(Dialect::MediaRef, reference.clone(), &here(&aliases)).is_err());
    assert!(serde_json::from_value::<Media>(reference).is_err());
}

#[test]
fn l5_signed_urls_are_not_persisted() {
    let signed = [
        "https://b.s3.amazonaws.com/k?X-Amz-Algorithm=A&X-Amz-Signature=ab",
        "https://storage.googleapis.com/b/k?x-goog-signature=ab",
        "https://a.blob.core.windows.net/c/k?sv=2020&se=2026&sig=ab%3D",
        "https://d.cloudfront.net/k?Expires=1&Signature=a&Key-Pair-Id=K",
        "https://b.oss-cn.aliyuncs.com/k?OSSAccessKeyId=a&Expires=1&Signature=b",
    ];
    let aliases = ForeignIds::default();
    for url in signed {
        assert!(wire::media::is_presigned(url), "{url}");
        let media = Media::from_url(url);
        assert!(wire::media::may_persist(&media).is_err());
        assert!(matches!(
            encode(Dialect::ContentBlock, &media, &here(&aliases), &mut ledger()),
            Err(ConversionError::NeedsStore {
                need: RequiredAction::Fetch,
                ..
            })
        ));
        let id = MediaId::new(7).uuid();
        for block in [
            json!({"type": "image", "media_id": id, "text_fallback": format!("see {url}")}),
            json!({"type": "image", "media_id": id, "text_fallback": "t", "metadata": {"thumb": [url]}}),
        ] {
            assert!(decode(Dialect::ContentBlock, block, &here(&aliases)).is_err());
        }
    }
    for key in [
        "bucket",
        "key",
        "presigned_url",
        "schema_version",
        "content_version",
    ] {
        let block =
            json!({"type": "image", "media_id": "m", "text_fallback": "t", "metadata": {"a": {key: 1}}});
        let refused = decode(Dialect::ContentBlock, block, &here(&aliases)).unwrap_err();
        assert_eq!(refused.pointer(), format!("/metadata/a/{key}"));
    }
    for plain in [
        "https://example.com/a?signal=1",
        "https://example.com/sig",
        "a sentence? sig=1",
    ] {
        assert!(!wire::media::is_presigned(plain), "{plain}");
    }
}

/// An id in its issuer's format is preserved through every other dialect and back.
#[test]
fn foreign_ids_roundtrip_unchanged() {
    let none = ForeignIds::default();
    for (own, value) in [
        (
            Dialect::Cognitive,
            json!({"type": "upload_ref", "upload_id": "upl_abc123", "media_type": "image/png"}),
        ),
        (
            Dialect::MediaRef,
            json!({"kind": "sms_file", "uri": "sms+file://01JFK...ABCD", "mime": "image/png"}),
        ),
    ] {
        let media = decode(own, value.clone(), &here(&none)).unwrap();
        let MediaSource::Stored(StoredRef::Foreign { text, .. }) = &media.source else {
            panic!("{media:?}")
        };
        let mut aliases = ForeignIds::default();
        aliases.insert(own, text, MediaId::new(7));
        for other in DIALECTS.iter().filter(|other| **other != own) {
            let refused = encode(*other, &media, &here(&none), &mut ledger()).unwrap_err();
            assert!(
                matches!(
                    refused,
                    ConversionError::NeedsStore {
                        need: RequiredAction::Alias,
                        ..
                    }
                ),
                "{other}"
            );
            let there = convert(own, *other, value.clone(), &here(&aliases), &mut ledger()).unwrap();
            assert!(!there.to_string().contains(text.as_str()), "{there}");
            let back = convert(*other, own, there, &here(&aliases), &mut ledger()).unwrap();
            let key = if own == Dialect::Cognitive {
                "upload_id"
            } else {
                "uri"
            };
            assert_eq!(back[key], value[key]);
        }
    }
}

#[test]
fn id_is_formatted_per_dialect() {
    let aliases = ForeignIds::default();
    let media = Media::new(
        MediaSource::Stored(StoredRef::Id(MediaId::new(7))),
        Some("image/png".into()),
    );
    let spelled = DIALECTS.iter().map(|dialect| {
        encode(*dialect, &media, &here(&aliases), &mut ledger())
            .unwrap()
            .to_string()
    });
    insta::assert_snapshot!(spelled.collect::<Vec<_>>().join("\n"), @r#"
    {"type":"upload_ref","upload_id":"upl_00000000000000000000000007","media_type":"image/png"}
    {"kind":"sms_file","uri":"sms+file://00000000000000000000000007","mime":"image/png"}
    {"type":"image","media_id":"00000000-0000-0000-0000-000000000007","text_fallback":"[image]","metadata":{"mime_type":"image/png","text_fallback_generated":true}}
    {"type":"image_url","image_url":{"url":"media:///00000000-0000-0000-0000-000000000007"},"x-media":{"mime":"image/png"}}
    "#);
}
