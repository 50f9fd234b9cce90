//! The request body. Media outside of memory is read and encoded as base64 piece by piece while the
//! connection accepts it: only one piece is in memory, and a second attempt reads it again.

use std::io;

use bytes::Bytes;
use engine::media::base64_of;
use futures::{StreamExt, stream};
use ir::media::StoredRef;
use ir::{ChatRequest, Error, ErrorKind, Media, MediaSource, Phase};
use reqwest::header::{CONTENT_LENGTH, HeaderMap, HeaderValue};
use wire::holes::{Holes, Piece};

/// A body and its length.
#[derive(Debug)]
pub(super) enum Outgoing {
    Whole(Bytes),
    Pieces(Vec<Piece>),
    /// A multipart form, which contains its length.
    Form(reqwest::Body),
}

impl Outgoing {
    pub(super) fn new(body: Vec<u8>, holes: &Holes) -> Self {
        if holes.is_empty() {
            return Self::Whole(Bytes::from(body));
        }
        Self::Pieces(holes.open(body))
    }

    /// Without the length, hyper would use chunked encoding, which not every server accepts.
    pub(super) fn announce(&self, headers: &mut HeaderMap) {
        if let Self::Pieces(pieces) = self {
            let length: u64 = pieces.iter().map(Piece::size_bytes).sum();
            headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        }
    }

    pub(super) fn into_body(self) -> reqwest::Body {
        match self {
            Self::Whole(bytes) => reqwest::Body::from(bytes),
            Self::Pieces(pieces) => reqwest::Body::wrap_stream(stream::iter(pieces).map(written).flatten()),
            Self::Form(body) => body,
        }
    }
}

fn written(piece: Piece) -> stream::BoxStream<'static, io::Result<Bytes>> {
    match piece {
        Piece::Text(text) => stream::iter([Ok(Bytes::from(text))]).boxed(),
        Piece::Base64(held) => base64_of(&held).boxed(),
    }
}

/// Replaces media outside of memory by placeholders. Text media is loaded, because dialects may encode it as
/// text.
pub(super) async fn cut(chat: &mut ChatRequest) -> Result<Holes, Error> {
    for media in chat.media_mut() {
        let text = media
            .mime
            .as_deref()
            .is_some_and(|mime| mime.starts_with("text/"));
        if let (MediaSource::Stored(StoredRef::Handle(held)), true) = (&media.source, text) {
            let held = held.clone();
            let read = tokio::task::spawn_blocking(move || held.to_base64()).await;
            let read = read.unwrap_or_else(|error| Err(io::Error::other(error)));
            media.source = MediaSource::Inline(read.map_err(|_| unreadable())?);
        }
    }
    let is_held = |media: &Media| matches!(media.source, MediaSource::Stored(StoredRef::Handle(_)));
    if !chat.media_mut().iter().any(|media| is_held(media)) {
        return Ok(Holes::default());
    }
    let mut secret = [0; 16];
    getrandom::fill(&mut secret).map_err(|_| unreadable())?;
    Ok(Holes::cut(chat.media_mut(), u128::from_le_bytes(secret)))
}

fn unreadable() -> Error {
    let message = "media of the request could not be read from disk";
    Error::new(ErrorKind::Internal, Phase::BeforeSend, message)
}
