//! Media that is not in memory: the body that is assembled from segments is, byte for byte, the body with
//! inline media.

use bytes::Bytes;
use ir::media::{Base64, MediaHandle};
use ir::{ChatRequest, Component, Ledger, Media, MediaSource, Message, Part, Role};
use proptest::prelude::*;
use spill::{BodySegment, MediaPlaceholders, SegmentedBody};
use wire::chat::{DIALECTS, encode_request};

fn part(bytes: &[u8], mime: &str, as_handle: bool) -> Part {
    let source = if as_handle {
        MediaSource::Handle(MediaHandle::from_bytes(bytes.to_vec()).unwrap())
    } else {
        MediaSource::Inline(Base64::from_bytes(bytes))
    };
    Part::from(Media::new(source, Some(String::from(mime))))
}

fn chat(media: &[(Vec<u8>, &str)], words: &str, as_handle: bool) -> ChatRequest {
    let mut message = Message::text(Role::User, words);
    for (bytes, mime) in media {
        message.parts.push(part(bytes, mime, as_handle));
        message.parts.push(Part::text(words));
    }
    ChatRequest::new("m", vec![message])
}

fn filled(body: &SegmentedBody) -> Vec<u8> {
    let mut bytes = Vec::new();
    for segment in body.segments() {
        match segment {
            BodySegment::Bytes(text) => bytes.extend(text),
            BodySegment::Base64(media) => bytes.extend(media.to_base64().unwrap().as_str().bytes()),
            BodySegment::Raw(_) => panic!("media in JSON is base64"),
        }
    }
    assert_eq!(body.size_bytes(), bytes.len() as u64);
    bytes
}

fn png(length: usize) -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    bytes.extend((0..length).map(|n| (n * 7 % 256) as u8));
    bytes
}

#[test]
fn body_and_losses_equal_those_of_inline_media() {
    let media = [
        (png(100), "image/png"),
        (png(101), "image/png"),
        (b"%PDF-1.7 and so on".to_vec(), "application/pdf"),
        (b"RIFF....WAVEfmt ".to_vec(), "audio/wav"),
        (png(100), "image/png"),
        (b"x".to_vec(), "image/jpeg"),
    ];
    for dialect in DIALECTS {
        let mut ledgers = [Ledger::new(Component::Adapter), Ledger::new(Component::Adapter)];
        let inline = encode_request(*dialect, &chat(&media, "look", false), &mut ledgers[0]).unwrap();
        let mut request = chat(&media, "look", true);
        let placeholders = MediaPlaceholders::insert(request.media_mut(), 42);
        let body = encode_request(*dialect, &request, &mut ledgers[1]).unwrap();
        let body = placeholders.split(serde_json::to_vec(&body).unwrap());
        assert!(body.segments().len() > 1, "{dialect}");
        assert_eq!(filled(&body), serde_json::to_vec(&inline).unwrap(), "{dialect}");
        assert_eq!(ledgers[0].entries(), ledgers[1].entries(), "{dialect}");
    }
}

/// Placeholders of one body that a user copies into the next request have no effect.
#[test]
fn user_text_is_not_taken_for_placeholders() {
    let media = [(png(10), "image/png")];
    let mut spied = chat(&media, "look", true);
    let _ = MediaPlaceholders::insert(spied.media_mut(), 1);
    let MediaSource::Inline(placeholder) = &spied.media_mut()[0].source else {
        panic!("{spied:?}");
    };
    let words = String::from(placeholder.as_str());
    let mut request = chat(&media, &words, true);
    let placeholders = MediaPlaceholders::insert(request.media_mut(), 2);
    let body = serde_json::to_vec(&request).unwrap();
    assert_eq!(placeholders.split(body).segments().len(), 3);
}

#[test]
fn a_request_without_media_is_one_segment() {
    let mut request = chat(&[], "look", true);
    let placeholders = MediaPlaceholders::insert(request.media_mut(), 3);
    assert_eq!(
        placeholders.split(Vec::from("{}")).segments(),
        [BodySegment::Bytes(Bytes::from_static(b"{}"))]
    );
}

proptest! {
    #[test]
    fn arbitrary_bytes_roundtrip(list in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 1..6), secret in any::<u128>()) {
        let media: Vec<_> = list.into_iter().map(|bytes| (bytes, "image/png")).collect();
        for dialect in DIALECTS {
            let mut ledger = Ledger::new(Component::Adapter);
            let inline = encode_request(*dialect, &chat(&media, "ö\"\\", false), &mut ledger).unwrap();
            let mut request = chat(&media, "ö\"\\", true);
            let placeholders = MediaPlaceholders::insert(request.media_mut(), secret);
            let body = encode_request(*dialect, &request, &mut ledger).unwrap();
            prop_assert_eq!(filled(&placeholders.split(serde_json::to_vec(&body).unwrap())), serde_json::to_vec(&inline).unwrap());
        }
    }
}
