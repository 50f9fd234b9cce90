//! JSON responses with streamed media: media that is not in memory is serialized as a placeholder, which is
//! replaced chunk by chunk while the response is sent.

use axum::body::Body;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use ir::{Error, Media, Phase};
use serde::Serialize;
use spill::{MediaPlaceholders, SegmentedBody, random_secret};

/// Replaces media that is not in memory by placeholders.
pub(super) fn insert_placeholders<'a>(
    media: impl IntoIterator<Item = &'a mut Media>,
) -> Result<MediaPlaceholders, Error> {
    let secret = random_secret(Phase::MidStream)?;
    Ok(MediaPlaceholders::insert(media, secret))
}

/// The body with streamed media.
pub(super) fn json(body: &impl Serialize, placeholders: &MediaPlaceholders) -> Response {
    match serde_json::to_vec(body) {
        Ok(text) => streamed(
            placeholders.split(text),
            HeaderValue::from_static("application/json"),
        ),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// A response with its content length.
pub(super) fn streamed(body: SegmentedBody, content_type: HeaderValue) -> Response {
    let length = HeaderValue::from(body.size_bytes());
    let head = [(CONTENT_TYPE, content_type), (CONTENT_LENGTH, length)];
    (head, Body::from_stream(body.into_stream())).into_response()
}
