//! JSON responses with streamed media: media that is not in memory is serialized as a placeholder, which is
//! replaced chunk by chunk while the response is sent.

use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use engine::media::base64_of;
use futures::stream::{self, BoxStream, StreamExt};
use ir::{Error, ErrorKind, Media, Phase};
use serde::Serialize;
use wire::holes::{Holes, Piece};

/// Replaces media that is not in memory by placeholders.
pub(super) fn cut<'a>(media: impl IntoIterator<Item = &'a mut Media>) -> Result<Holes, Error> {
    let mut secret = [0; 16];
    getrandom::fill(&mut secret).map_err(|_| {
        let message = "the random number generator of the system failed";
        Error::new(ErrorKind::Internal, Phase::MidStream, message)
    })?;
    Ok(Holes::cut(media, u128::from_le_bytes(secret)))
}

/// The body with streamed media, and its content length.
pub(super) fn json(body: &impl Serialize, holes: &Holes) -> Response {
    let Ok(text) = serde_json::to_vec(body) else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let pieces = holes.open(text);
    let length = pieces.iter().map(Piece::size_bytes).sum::<u64>();
    let body = Body::from_stream(stream::iter(pieces).flat_map(written));
    let kind = HeaderValue::from_static("application/json");
    let head = [(CONTENT_TYPE, kind), (CONTENT_LENGTH, HeaderValue::from(length))];
    (head, body).into_response()
}

fn written(piece: Piece) -> BoxStream<'static, std::io::Result<Bytes>> {
    match piece {
        Piece::Text(text) => stream::iter([Ok(Bytes::from(text))]).boxed(),
        Piece::Base64(held) => base64_of(&held).boxed(),
    }
}
