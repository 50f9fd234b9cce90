//! Bodies with media that is read while they are sent: a chunk is read on the blocking pool after the
//! previous one was consumed. The media stays available as long as the stream exists.

use std::io::{self, Read};

use bytes::Bytes;
use futures::stream::{self, BoxStream, Stream, StreamExt};
use ir::media::{Base64, MediaHandle};

use crate::limits::CHUNK_BYTES;

/// A part of a body, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodySegment {
    Bytes(Bytes),
    /// The bytes of media as they are.
    Raw(MediaHandle),
    /// The bytes of media as standard base64.
    Base64(MediaHandle),
}

impl BodySegment {
    pub fn size_bytes(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Raw(media) => media.size_bytes(),
            Self::Base64(media) => media.size_bytes().div_ceil(3) * 4,
        }
    }

    fn into_stream(self) -> BoxStream<'static, io::Result<Bytes>> {
        match self {
            Self::Bytes(bytes) => stream::iter([Ok(bytes)]).boxed(),
            Self::Raw(media) => chunks(&media, Bytes::from).boxed(),
            // A chunk is a multiple of three bytes, so that only the last one is padded.
            Self::Base64(media) => {
                let encode = |bytes: Vec<u8>| Bytes::from(Base64::from_bytes(&bytes).into_string());
                chunks(&media, encode).boxed()
            }
        }
    }
}

/// A body of any size, of which at most one chunk of media is in memory. It can be sent repeatedly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SegmentedBody(Vec<BodySegment>);

impl From<Vec<BodySegment>> for SegmentedBody {
    fn from(segments: Vec<BodySegment>) -> Self {
        Self(segments)
    }
}

impl From<BodySegment> for SegmentedBody {
    fn from(segment: BodySegment) -> Self {
        Self(vec![segment])
    }
}

impl SegmentedBody {
    pub fn segments(&self) -> &[BodySegment] {
        &self.0
    }

    pub fn size_bytes(&self) -> u64 {
        self.0.iter().map(BodySegment::size_bytes).sum()
    }

    pub fn into_stream(self) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
        stream::iter(self.0).flat_map(BodySegment::into_stream)
    }
}

fn chunks(
    media: &MediaHandle,
    encode: fn(Vec<u8>) -> Bytes,
) -> impl Stream<Item = io::Result<Bytes>> + Send + use<> {
    let from = (media.reader(), media.size_bytes());
    stream::try_unfold(from, move |(mut reader, left)| async move {
        if left == 0 {
            return Ok(None);
        }
        let read = tokio::task::spawn_blocking(move || {
            let mut bytes = Vec::new();
            let wanted = left.min(CHUNK_BYTES as u64);
            (&mut reader).take(wanted).read_to_end(&mut bytes)?;
            let read = bytes.len() as u64;
            // The size was announced before.
            match read < wanted {
                true => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
                false => Ok((encode(bytes), (reader, left - read))),
            }
        });
        read.await.map_err(io::Error::other)?.map(Some)
    })
}
