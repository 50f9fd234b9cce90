//! Streams of media of any size.

use bytes::Bytes;
use futures::TryStreamExt;
use ir::media::{Base64, MediaHandle};
use spill::limits::CHUNK_BYTES;
use spill::{BodySegment, SegmentedBody};

async fn chunks(segment: BodySegment) -> Vec<Bytes> {
    let body = SegmentedBody::from(segment);
    let announced = body.size_bytes();
    let chunks: Vec<_> = body.into_stream().try_collect().await.unwrap();
    assert_eq!(announced, chunks.concat().len() as u64);
    chunks
}

#[tokio::test]
async fn streams_media_of_any_size_in_chunks() {
    for size in [0, 1, 2, 3, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES - 1] {
        let bytes: Vec<u8> = (0..size).map(|n| (n % 251) as u8).collect();
        let media = MediaHandle::from_bytes(bytes.clone()).unwrap();
        let raw = chunks(BodySegment::Raw(media.clone())).await;
        assert!(raw.iter().all(|chunk| chunk.len() <= CHUNK_BYTES));
        assert_eq!(raw.concat(), bytes, "{size}");
        let text = chunks(BodySegment::Base64(media)).await.concat();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(Base64::from_text(text), Base64::from_bytes(&bytes), "{size}");
    }
}
