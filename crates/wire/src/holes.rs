//! Placeholders for media that is not in memory. The body is encoded with a short placeholder in place of the
//! bytes, in any dialect, and then split at the placeholders; the sender writes the media there, piece by
//! piece. The dialects do not depend on this.
//!
//! A placeholder begins with the first bytes of the media, because some dialects inspect them, and ends in a
//! secret suffix that clients cannot predict, so that user text is never taken for a placeholder.

use ir::media::{Base64, MediaHandle, StoredRef};
use ir::{Media, MediaSource};
use memchr::memmem;

/// A piece of a body, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    Text(Vec<u8>),
    /// These bytes as standard base64.
    Base64(MediaHandle),
}

impl Piece {
    pub fn size_bytes(&self) -> u64 {
        match self {
            Self::Text(text) => text.len() as u64,
            Self::Base64(held) => held.size_bytes().div_ceil(3) * 4,
        }
    }
}

/// The media that was removed from a request or a response.
#[derive(Clone, Debug, Default)]
pub struct Holes(Vec<(String, MediaHandle)>);

impl Holes {
    /// Replaces media handles by placeholders. `secret` is new for every body.
    pub fn cut<'a>(media: impl IntoIterator<Item = &'a mut Media>, secret: u128) -> Self {
        let mut holes = Vec::new();
        for media in media {
            if let MediaSource::Stored(StoredRef::Handle(held)) = &media.source {
                let held = held.clone();
                let stand_in = stand_in(&held, holes.len(), secret);
                media.source = MediaSource::Inline(Base64::from_text(stand_in.clone()));
                holes.push((stand_in, held));
            }
        }
        Self(holes)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The body split at its placeholders.
    pub fn open(&self, body: Vec<u8>) -> Vec<Piece> {
        if self.0.is_empty() {
            return vec![Piece::Text(body)];
        }
        let mut found: Vec<(usize, &str, &MediaHandle)> = Vec::new();
        for (stand_in, held) in &self.0 {
            let places = memmem::find_iter(&body, stand_in);
            found.extend(places.map(|at| (at, stand_in.as_str(), held)));
        }
        found.sort_by_key(|(at, ..)| *at);
        let mut pieces = Vec::new();
        let mut from = 0;
        for (at, stand_in, held) in found {
            pieces.push(Piece::Text(body.get(from..at).unwrap_or_default().to_vec()));
            pieces.push(Piece::Base64(held.clone()));
            from = at + stand_in.len();
        }
        pieces.push(Piece::Text(body.get(from..).unwrap_or_default().to_vec()));
        pieces
    }
}

/// Whole groups of four characters, so that the placeholder is valid base64.
fn stand_in(held: &MediaHandle, index: usize, secret: u128) -> String {
    let head = held.head();
    let whole = head.get(..head.len() / 3 * 3).unwrap_or_default();
    let head = Base64::from_bytes(whole).into_string();
    format!("{head}{secret:032x}{index:08x}")
}
