//! Placeholders for media that is not in memory. The body is encoded with a short placeholder in place of the
//! bytes, in any dialect, and then split at the placeholders; the sender writes the media there, chunk by
//! chunk. The dialects do not depend on this.
//!
//! A placeholder begins with the first bytes of the media, because some dialects inspect them, and ends in a
//! secret suffix that clients cannot predict, so that user text is never taken for a placeholder.

use bytes::{Buf, Bytes};
use ir::media::{Base64, MediaHandle};
use ir::{Error, ErrorKind, Media, MediaSource, Phase};
use memchr::memmem;

use crate::body::{BodySegment, SegmentedBody};

/// The media that was removed from a request or a response.
#[derive(Clone, Debug, Default)]
pub struct MediaPlaceholders(Vec<(String, MediaHandle)>);

impl MediaPlaceholders {
    /// Replaces media handles by placeholders. `secret` is new for every body.
    pub fn insert<'a>(media: impl IntoIterator<Item = &'a mut Media>, secret: u128) -> Self {
        let mut inserted = Vec::new();
        for media in media {
            if let MediaSource::Handle(handle) = &media.source {
                let handle = handle.clone();
                let placeholder = placeholder(&handle, inserted.len(), secret);
                media.source = MediaSource::Inline(Base64::from_text(placeholder.clone()));
                inserted.push((placeholder, handle));
            }
        }
        Self(inserted)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The body split at its placeholders.
    pub fn split(&self, body: Vec<u8>) -> SegmentedBody {
        let mut found: Vec<(usize, &str, &MediaHandle)> = Vec::new();
        for (placeholder, handle) in &self.0 {
            let places = memmem::find_iter(&body, placeholder);
            found.extend(places.map(|at| (at, placeholder.as_str(), handle)));
        }
        found.sort_by_key(|(at, ..)| *at);
        let mut rest = Bytes::from(body);
        let mut segments = Vec::new();
        let mut end = 0;
        for (at, placeholder, handle) in found {
            let Some(length) = at.checked_sub(end) else {
                continue;
            };
            segments.push(BodySegment::Bytes(rest.split_to(length)));
            segments.push(BodySegment::Base64(handle.clone()));
            rest.advance(placeholder.len());
            end = at + placeholder.len();
        }
        segments.push(BodySegment::Bytes(rest));
        SegmentedBody::from(segments)
    }
}

/// An unpredictable number for a body.
pub fn random_secret(phase: Phase) -> Result<u128, Error> {
    let mut secret = [0; 16];
    getrandom::fill(&mut secret).map_err(|_| {
        let message = "the random number generator of the system failed";
        Error::new(ErrorKind::Internal, phase, message)
    })?;
    Ok(u128::from_le_bytes(secret))
}

/// Whole groups of four characters, so that the placeholder is valid base64.
fn placeholder(handle: &MediaHandle, index: usize, secret: u128) -> String {
    let head = handle.head();
    let whole = head.get(..head.len() / 3 * 3).unwrap_or_default();
    let head = Base64::from_bytes(whole).into_string();
    format!("{head}{secret:032x}{index:08x}")
}
