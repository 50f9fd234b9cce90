//! Streams of stored media: a chunk is read on the blocking pool after the previous one was consumed. At most
//! one chunk is in memory; the media stays available as long as the stream exists.

use std::io::{self, Read};

use bytes::Bytes;
use futures::stream::{self, Stream};
use ir::media::{Base64, MediaHandle};

use crate::limits::MEDIA_CHUNK_BYTES;

/// The raw bytes.
pub fn bytes_of(held: &MediaHandle) -> impl Stream<Item = io::Result<Bytes>> + Send + use<> {
    pieces(held, Bytes::from)
}

/// The bytes as standard base64. A chunk is a multiple of three bytes, so that only the last one is padded.
pub fn base64_of(held: &MediaHandle) -> impl Stream<Item = io::Result<Bytes>> + Send + use<> {
    pieces(held, |bytes| {
        Bytes::from(Base64::from_bytes(&bytes).into_string())
    })
}

fn pieces(
    held: &MediaHandle,
    spell: fn(Vec<u8>) -> Bytes,
) -> impl Stream<Item = io::Result<Bytes>> + Send + use<> {
    let from = (held.reader(), held.size_bytes());
    stream::try_unfold(from, move |(mut reader, left)| async move {
        if left == 0 {
            return Ok(None);
        }
        let read = tokio::task::spawn_blocking(move || {
            let mut bytes = Vec::new();
            let wanted = left.min(MEDIA_CHUNK_BYTES as u64);
            (&mut reader).take(wanted).read_to_end(&mut bytes)?;
            let read = bytes.len() as u64;
            // The size was announced before.
            match read < wanted {
                true => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
                false => Ok((spell(bytes), (reader, left - read))),
            }
        });
        read.await.map_err(io::Error::other)?.map(Some)
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures::TryStreamExt;
    use ir::media::{Base64, MediaHandle, MediaId};

    use super::{base64_of, bytes_of};
    use crate::limits::MEDIA_CHUNK_BYTES;

    #[tokio::test]
    async fn streams_media_of_any_size_in_chunks() {
        for size in [
            0,
            1,
            2,
            3,
            MEDIA_CHUNK_BYTES,
            MEDIA_CHUNK_BYTES + 1,
            3 * MEDIA_CHUNK_BYTES - 1,
        ] {
            let bytes: Vec<u8> = (0..size).map(|n| (n % 251) as u8).collect();
            let held = MediaHandle::new(MediaId::new(1), Arc::new(bytes.clone())).unwrap();
            let raw: Vec<_> = bytes_of(&held).try_collect().await.unwrap();
            assert!(raw.iter().all(|piece| piece.len() <= MEDIA_CHUNK_BYTES));
            assert_eq!(raw.concat(), bytes, "{size}");
            let text: Vec<_> = base64_of(&held).try_collect().await.unwrap();
            let text = String::from_utf8(text.concat()).unwrap();
            assert_eq!(Base64::from_text(text), Base64::from_bytes(&bytes), "{size}");
        }
    }
}
