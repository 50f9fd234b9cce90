//! The request body. Media outside of memory is read and encoded while the connection accepts it: only one
//! chunk is in memory, and a second attempt reads it again.

use std::io;

use bytes::Bytes;
use futures::TryStreamExt;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use ir::{ChatRequest, Error, ErrorKind, Media, MediaSource, Phase};
use spill::{MediaPlaceholders, SegmentedBody, random_secret};

/// A body as hyper reads it.
pub(super) type BoxedBody = UnsyncBoxBody<Bytes, io::Error>;

#[derive(Debug)]
pub(super) enum RequestBody {
    Bytes(Bytes),
    Streamed(SegmentedBody),
}

impl RequestBody {
    pub(super) fn new(body: Vec<u8>, placeholders: &MediaPlaceholders) -> Self {
        match placeholders.is_empty() {
            true => Self::Bytes(Bytes::from(body)),
            false => Self::Streamed(placeholders.split(body)),
        }
    }

    pub(super) fn size_bytes(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Streamed(body) => body.size_bytes(),
        }
    }

    pub(super) fn into_body(self) -> BoxedBody {
        match self {
            Self::Bytes(bytes) => Full::new(bytes).map_err(|never| match never {}).boxed_unsync(),
            Self::Streamed(body) => StreamBody::new(body.into_stream().map_ok(Frame::data)).boxed_unsync(),
        }
    }
}

/// Replaces media outside of memory by placeholders. Text media is loaded, because dialects may encode it as
/// text.
pub(super) async fn insert_placeholders(chat: &mut ChatRequest) -> Result<MediaPlaceholders, Error> {
    for media in chat.media_mut() {
        let text = media
            .mime
            .as_deref()
            .is_some_and(|mime| mime.starts_with("text/"));
        if let (MediaSource::Handle(handle), true) = (&media.source, text) {
            let handle = handle.clone();
            let read = tokio::task::spawn_blocking(move || handle.to_base64()).await;
            let read = read.unwrap_or_else(|error| Err(io::Error::other(error)));
            media.source = MediaSource::Inline(read.map_err(|_| unreadable())?);
        }
    }
    let is_handle = |media: &Media| matches!(media.source, MediaSource::Handle(_));
    if !chat.media_mut().iter().any(|media| is_handle(media)) {
        return Ok(MediaPlaceholders::default());
    }
    let secret = random_secret(Phase::BeforeSend)?;
    Ok(MediaPlaceholders::insert(chat.media_mut(), secret))
}

fn unreadable() -> Error {
    let message = "media of the request could not be read from disk";
    Error::new(ErrorKind::Internal, Phase::BeforeSend, message)
}
