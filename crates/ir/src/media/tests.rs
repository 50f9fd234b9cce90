//! Media ids in three spellings, base64 passthrough, round trip of media references.

use std::io::Read;

use proptest::prelude::*;
use serde_json::json;

use super::*;

proptest! {
    #[test]
    fn media_id_round_trips_in_three_spellings(bits: u128) {
        let id = MediaId::new(bits);
        prop_assert_eq!(MediaId::from_uuid(&id.uuid()), Ok(id));
        prop_assert_eq!(MediaId::from_uri(&id.uri()), Ok(id));
        prop_assert_eq!(MediaId::from_uri(&id.uri().replace("sms+file", "smsfile")), Ok(id));
        prop_assert_eq!(MediaId::from_upload(&id.upload()), Ok(id));
    }

    #[test]
    fn base64_round_trips_bytes(bytes: Vec<u8>) {
        let text = Base64::from_bytes(&bytes);
        prop_assert!(text.is_canonical());
        prop_assert_eq!(&text.decode().unwrap(), &bytes);
        let unpadded = Base64::from_text(text.as_str().trim_end_matches('='));
        prop_assert_eq!(unpadded.decode().unwrap(), bytes);
    }

    #[test]
    fn arbitrary_text_does_not_panic_as_media_id(text: String) {
        for read in [MediaId::from_uuid, MediaId::from_uri, MediaId::from_upload] {
            prop_assert!(read(&text).is_err() || text.len() > 25);
        }
        prop_assert!(!matches!(Media::from_url(&text).source, MediaSource::Stored(_)));
    }
}

#[test]
fn foreign_id_is_preserved() {
    assert!(matches!(
        StoredRef::from_uri("sms+file://01JFK...ABCD"),
        StoredRef::Foreign { .. }
    ));
    assert!(matches!(
        StoredRef::from_upload("upl_abc123"),
        StoredRef::Foreign { .. }
    ));
    let mut aliases = ForeignIds::default();
    aliases.insert(Dialect::Cognitive, "upl_abc123", MediaId::new(7));
    let mut media = Media::new(MediaSource::Stored(StoredRef::from_upload("upl_abc123")), None);
    media.resolve(&aliases);
    assert_eq!(media.source, MediaSource::Stored(StoredRef::Id(MediaId::new(7))));
    assert_eq!(
        aliases.text(Dialect::Cognitive, MediaId::new(7)),
        Some("upl_abc123")
    );
}

#[test]
fn media_references_round_trip() {
    for reference in [
        json!({"kind": "inline_base64", "mime": "audio/wav", "data": "..."}),
        json!({"kind": "sms_file", "uri": "sms+file://<id>", "mime": "image/png"}),
        json!({"kind": "http_url", "url": "https://...", "mime": "image/jpeg"}),
        json!({"kind": "http_url", "url": "u", "facts": "odd", "hints": {}, "checksum": {"algorithm": "md5"}}),
        json!({"kind": "http_url", "url": "u", "mime": "image/png", "media_kind": "image", "generation_params": null}),
        json!({"kind": "http_url", "url": "u", "ext": {"media-ref": {"x": 1}, "cognitive": {"y": 2}}}),
        json!({"kind": "http_url", "url": "u", "facts": {"size_bytes": 3}, "x": 1, "ext": {"cognitive": {"y": 2}}}),
    ] {
        let media: Media = serde_json::from_value(reference.clone()).unwrap();
        assert_eq!(serde_json::to_value(&media).unwrap(), reference);
    }
}

#[test]
fn verified_claim_is_preserved_but_not_trusted() {
    let verified = json!({"kind": "http_url", "url": "u", "mime": "image/png", "mime_trust": "verified"});
    let media: Media = serde_json::from_value(verified.clone()).unwrap();
    assert_eq!(media.mime_trust, MimeTrust::Declared);
    assert_eq!(serde_json::to_value(&media).unwrap(), verified);
    let local = json!({"kind": "local_file", "path": "/etc/passwd", "mime": "text/plain"});
    assert!(serde_json::from_value::<Media>(local).is_err());
}

#[test]
fn inferred_octet_stream_is_no_type() {
    let unknown =
        json!({"kind": "http_url", "url": "u", "mime": "application/octet-stream", "mime_trust": "inferred"});
    let media: Media = serde_json::from_value(unknown.clone()).unwrap();
    assert_eq!(media.mime, None);
    assert_eq!(serde_json::to_value(&media).unwrap(), unknown);
}

#[test]
fn data_urls_become_inline_bytes() {
    let media = Media::from_url("data:image/png;base64,iVBORw0KGgo=");
    assert_eq!(media.kind, MediaKind::Image);
    assert_eq!(media.to_url().unwrap(), "data:image/png;base64,iVBORw0KGgo=");
    assert!(matches!(
        Media::from_url("data:text/plain,hello").source,
        MediaSource::Remote(_)
    ));
    let undeclared = Media::from_url("data:;base64,iVBORw0KGgo=");
    assert_eq!(undeclared.mime_or_sniffed().as_deref(), Some("image/png"));
}

#[test]
fn media_handle_is_readable_and_not_named_by_documents() {
    let bytes: Vec<u8> = b"\x89PNG\r\n\x1a\n".iter().copied().chain(0..=255).collect();
    let handle = MediaHandle::from_bytes(bytes.clone()).unwrap();
    assert_eq!(handle.size_bytes(), 264);
    assert_eq!(handle.head(), &bytes[..48]);
    let (mut one, mut other) = (Vec::new(), Vec::new());
    let mut readers = (handle.reader(), handle.reader());
    readers.0.read_to_end(&mut one).unwrap();
    readers.1.read_to_end(&mut other).unwrap();
    assert_eq!((&one, &other), (&bytes, &bytes));
    assert_eq!(handle.to_base64().unwrap().decode().unwrap(), bytes);

    let media = Media::new(MediaSource::Handle(handle), None);
    assert_eq!(media.mime_or_sniffed().as_deref(), Some("image/png"));
    let mention = serde_json::to_value(&media).unwrap();
    let sha256 = "9d0c38e7aafe062c3a6dfc561e42771ec997d9359bb3d417ac4775a303292964";
    assert_eq!(mention, json!({"kind": "temporary", "sha256": sha256}));
    // A checksum gives no access to the bytes.
    let refused = serde_json::from_value::<Media>(mention).unwrap_err();
    assert!(refused.to_string().contains("temporary"), "{refused}");
}

proptest! {
    /// For any text, both ways of decoding give the same bytes, or both fail.
    #[test]
    fn streamed_decode_equals_buffered_decode(
        bytes in proptest::collection::vec(any::<u8>(), 0..3_000),
        breaks in proptest::collection::vec((any::<proptest::sample::Index>(), "[ \n=%_-]"), 0..4),
        url in any::<bool>(),
        bare in any::<bool>(),
    ) {
        let mut text = Base64::from_bytes(&bytes).into_string();
        if url {
            text = text.replace('+', "-").replace('/', "_");
        }
        if bare {
            text = text.trim_end_matches('=').into();
        }
        for (at, piece) in breaks {
            let at = at.index(text.len() + 1);
            text.insert_str(at, &piece);
        }
        let data = Base64::from_text(text);
        let mut out = Vec::new();
        let streamed = data.decode_into(&mut out).ok().map(|_| out);
        prop_assert_eq!(streamed, data.decode().ok());
    }
}
