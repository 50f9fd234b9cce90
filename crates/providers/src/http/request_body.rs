//! The request body. Media outside of memory is read and encoded while the connection accepts it: only one
//! chunk is in memory, and a second attempt reads it again.

use std::io;

use bytes::Bytes;
use ir::{ChatRequest, Error, ErrorKind, Media, MediaSource, Phase};
use reqwest::header::{CONTENT_LENGTH, HeaderMap, HeaderValue};
use spill::{MediaPlaceholders, SegmentedBody, random_secret};

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

    /// Without the length, hyper would use chunked encoding, which not every server accepts.
    pub(super) fn set_length(&self, headers: &mut HeaderMap) {
        if let Self::Streamed(body) = self {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(body.size_bytes()));
        }
    }

    pub(super) fn into_body(self) -> reqwest::Body {
        match self {
            Self::Bytes(bytes) => reqwest::Body::from(bytes),
            Self::Streamed(body) => reqwest::Body::wrap_stream(body.into_stream()),
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
