//! String content: the end of a run of plain text, and the meaning of escapes.

use super::error::JsonErrorKind;

/// Length of the run before the first quotation mark, backslash or control character.
#[inline]
pub(super) fn plain_run(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let mut at = 0;
    // Eight bytes at a time: a byte below a limit borrows from its high bit. A borrow can reach the next byte
    // only from a byte that is itself a hit, so the lowest hit is always correct.
    while let Some(block) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let block = u64::from_le_bytes(*block);
        let quote = block ^ (ONES * u64::from(b'"'));
        let backslash = block ^ (ONES * u64::from(b'\\'));
        let control = block.wrapping_sub(ONES * 0x20) & !block;
        let zeros = (quote.wrapping_sub(ONES) & !quote) | (backslash.wrapping_sub(ONES) & !backslash);
        let hits = (control | zeros) & HIGHS;
        if hits != 0 {
            return at + (hits.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    let rest = bytes.get(at..).unwrap_or_default();
    let end = rest
        .iter()
        .position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20));
    at + end.unwrap_or(rest.len())
}

/// An incomplete escape without its first backslash. The longest is a surrogate pair.
#[derive(Debug, Default)]
pub(super) struct Escape {
    bytes: [u8; 11],
    len: usize,
}

impl Escape {
    /// Adds the next byte; returns the character when the escape is complete.
    pub(super) fn push(&mut self, byte: u8) -> Result<Option<char>, JsonErrorKind> {
        let Some(slot) = self.bytes.get_mut(self.len) else {
            return Err(JsonErrorKind::BadEscape);
        };
        *slot = byte;
        self.len += 1;
        match self.len {
            1 if byte == b'u' => Ok(None),
            1 => match simple_escape(byte) {
                Some(text) => Ok(text.chars().next()),
                None => Err(JsonErrorKind::BadEscape),
            },
            6 if byte != b'\\' => Err(JsonErrorKind::LoneSurrogate),
            7 if byte != b'u' => Err(JsonErrorKind::LoneSurrogate),
            5 => match self.unit(1)? {
                0xD800..=0xDBFF => Ok(None),
                0xDC00..=0xDFFF => Err(JsonErrorKind::LoneSurrogate),
                unit => Ok(char::from_u32(unit)),
            },
            11 => match (self.unit(1)?, self.unit(7)?) {
                (high, low @ 0xDC00..=0xDFFF) => Ok(char::from_u32(
                    0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00),
                )),
                _ => Err(JsonErrorKind::LoneSurrogate),
            },
            _ => Ok(None),
        }
    }

    /// The four hex digits at `from`.
    fn unit(&self, from: usize) -> Result<u32, JsonErrorKind> {
        let digits = self.bytes.get(from..from + 4).unwrap_or_default();
        digits.iter().try_fold(0, |unit, digit| {
            let value = char::from(*digit).to_digit(16).ok_or(JsonErrorKind::BadEscape)?;
            Ok(unit * 16 + value)
        })
    }
}

/// The text for a backslash followed by one byte.
#[inline]
pub(super) fn simple_escape(byte: u8) -> Option<&'static str> {
    Some(match byte {
        b'"' => "\"",
        b'\\' => "\\",
        b'/' => "/",
        b'b' => "\u{8}",
        b'f' => "\u{c}",
        b'n' => "\n",
        b'r' => "\r",
        b't' => "\t",
        _ => return None,
    })
}

/// How many bytes at the end of a piece may begin a code point that continues in the next piece.
#[inline]
pub(super) fn cut_bytes(bytes: &[u8]) -> usize {
    for (count, byte) in (1..).zip(bytes.iter().rev().take(3)) {
        let width = match byte {
            0x80..=0xBF => continue,
            0xC2..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF4 => 4,
            _ => 1,
        };
        return if width > count { count } else { 0 };
    }
    0
}

/// The beginning of a code point split at the end of a piece, one to three bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PartialUtf8 {
    bytes: [u8; 3],
    len: usize,
}

impl PartialUtf8 {
    /// Longest piece that is joined as a whole.
    pub(super) const JOINED_MAX: usize = 64 - 3;

    /// Stores the bytes counted by [`cut_bytes`].
    pub(super) fn of(cut: &[u8]) -> Self {
        let mut point = Self::default();
        for (slot, byte) in point.bytes.iter_mut().zip(cut) {
            *slot = *byte;
            point.len += 1;
        }
        point
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many bytes the code point lacks, if one is stored.
    pub(super) fn missing(&self) -> Option<usize> {
        let width: usize = match self.bytes[0] {
            _ if self.len == 0 => return None,
            0xF0.. => 4,
            0xE0.. => 3,
            _ => 2,
        };
        Some(width.saturating_sub(self.len).max(1))
    }

    /// The stored bytes and up to [`Self::JOINED_MAX`] more, and the total length.
    pub(super) fn join(&self, more: &[u8]) -> ([u8; 64], usize) {
        let mut joined = [0; 64];
        let kept = self.bytes.get(..self.len).unwrap_or_default();
        let mut length = 0;
        for part in [kept, more] {
            if let Some(slots) = joined.get_mut(length..length + part.len()) {
                slots.copy_from_slice(part);
                length += part.len();
            }
        }
        (joined, length)
    }
}
