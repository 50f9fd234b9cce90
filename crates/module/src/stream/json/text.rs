//! The inside of strings: where a run of plain text ends, and what an escape stands for.

use super::error::JsonErrorKind;

/// Length of the run before the first quotation mark, backslash or control character.
pub(super) fn plain_run(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let mut at = 0;
    // Eight bytes at a time: a byte below a limit borrows from its high bit. A borrow can spill upwards
    // into the next byte only from a byte that is itself a hit, so the lowest hit is always true.
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

/// An escape as far as it has come, without its first backslash. The longest is a surrogate pair.
#[derive(Debug, Default)]
pub(super) struct Escape {
    bytes: [u8; 11],
    len: usize,
}

impl Escape {
    /// Takes the next byte; gives the character when the escape is whole.
    pub(super) fn push(&mut self, byte: u8) -> Result<Option<char>, JsonErrorKind> {
        let Some(slot) = self.bytes.get_mut(self.len) else {
            return Err(JsonErrorKind::BadEscape);
        };
        *slot = byte;
        self.len += 1;
        match self.len {
            1 => simple(byte),
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

    /// The four hex digits that begin at a place.
    fn unit(&self, from: usize) -> Result<u32, JsonErrorKind> {
        let digits = self.bytes.get(from..from + 4).unwrap_or_default();
        digits.iter().try_fold(0, |unit, digit| {
            let value = char::from(*digit).to_digit(16).ok_or(JsonErrorKind::BadEscape)?;
            Ok(unit * 16 + value)
        })
    }
}

fn simple(byte: u8) -> Result<Option<char>, JsonErrorKind> {
    Ok(Some(match byte {
        b'"' | b'\\' | b'/' => char::from(byte),
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return Ok(None),
        _ => return Err(JsonErrorKind::BadEscape),
    }))
}

/// The beginning of a code point that the end of a piece cut off.
#[derive(Debug, Default)]
pub(super) struct CutPoint {
    bytes: [u8; 4],
    len: usize,
}

impl CutPoint {
    /// Keeps one to three bytes that can begin a code point.
    pub(super) fn keep(&mut self, bytes: &[u8]) {
        self.len = 0;
        for (slot, byte) in self.bytes.iter_mut().zip(bytes) {
            *slot = *byte;
            self.len += 1;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Takes the next byte; gives the character when it is whole.
    pub(super) fn push(&mut self, byte: u8) -> Result<Option<char>, JsonErrorKind> {
        let Some(slot) = self.bytes.get_mut(self.len) else {
            return Err(JsonErrorKind::BadUtf8);
        };
        *slot = byte;
        self.len += 1;
        let bytes = self.bytes.get(..self.len).unwrap_or_default();
        match std::str::from_utf8(bytes) {
            Ok(text) => {
                self.len = 0;
                Ok(text.chars().next())
            }
            Err(error) if error.error_len().is_none() => Ok(None),
            Err(_) => Err(JsonErrorKind::BadUtf8),
        }
    }
}
