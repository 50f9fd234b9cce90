//! Incremental extraction of long base64 strings from a JSON text. Input pieces may be split at any byte; the
//! output text has a short placeholder for every long string under one key, and the decoded bytes of these
//! strings go to a sink. Only the text is buffered, and of a string only enough to decide that it is long.
//!
//! JSON is not validated: the remaining text is read by a parser, which reports syntax errors. A placeholder
//! ends in a secret number that a server cannot predict, so that server text is never taken for one.

use std::io;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Padding is checked separately, and trailing bits may be set: some senders do so, and the bytes are
/// unambiguous.
const TOLERANT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireNone),
);

/// Characters decoded at a time: whole groups of four.
const GROUP_CHARS: usize = 16 * 1024;

/// Receives the bytes of extracted strings, one string after another.
pub trait BytesSink {
    /// More bytes of the current string; the first bytes start a new string.
    fn take(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// The current string is complete.
    fn close(&mut self) -> io::Result<()>;
}

#[derive(Debug, thiserror::Error)]
pub enum ExtractError {
    #[error("a long string is not base64")]
    NotBase64,
    #[error("the text ends inside of a string")]
    Truncated,
    /// An error of the sink.
    #[error(transparent)]
    Sink(#[from] io::Error),
}

/// A text without its long strings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtractedJson {
    pub text: Vec<u8>,
    /// The placeholders, in the order of extraction.
    pub placeholders: Vec<String>,
}

#[derive(Debug)]
pub struct Base64Extractor {
    key: &'static str,
    chars_max: usize,
    secret: u128,
    state: State,
    extracted: ExtractedJson,
}

#[derive(Debug)]
enum State {
    /// Outside of strings, with the last token.
    Between(Last),
    /// In a string that stays in the text.
    Plain {
        start: usize,
        escaped: bool,
        /// The string is the value of the key and is extracted when it grows long.
        wanted: bool,
    },
    Extracting(Decoding),
}

/// Decides whether the next string is a value of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    Other,
    /// A string equal to the key.
    Key,
    /// The key followed by a colon.
    Colon,
}

impl Base64Extractor {
    /// Strings under `key` of more than `chars_max` characters are extracted. `secret` is new for every text.
    pub fn new(key: &'static str, chars_max: usize, secret: u128) -> Self {
        Self {
            key,
            chars_max,
            secret,
            state: State::Between(Last::Other),
            extracted: ExtractedJson::default(),
        }
    }

    /// Bytes of text buffered so far.
    pub fn text_bytes(&self) -> usize {
        self.extracted.text.len()
    }

    pub fn push(&mut self, bytes: &[u8], sink: &mut dyn BytesSink) -> Result<(), ExtractError> {
        let mut left = bytes;
        while let Some((byte, rest)) = left.split_first() {
            if let State::Extracting(decoding) = &mut self.state {
                left = decoding.push(left, sink)?;
                if decoding.is_over {
                    sink.close()?;
                    self.extracted.text.push(b'"');
                    self.state = State::Between(Last::Other);
                }
                continue;
            }
            left = rest;
            self.extracted.text.push(*byte);
            self.step(*byte, sink)?;
        }
        Ok(())
    }

    pub fn finish(self) -> Result<ExtractedJson, ExtractError> {
        match self.state {
            State::Between(_) => Ok(self.extracted),
            State::Plain { .. } | State::Extracting(_) => Err(ExtractError::Truncated),
        }
    }

    /// One byte of text that is already appended.
    fn step(&mut self, byte: u8, sink: &mut dyn BytesSink) -> Result<(), ExtractError> {
        match &mut self.state {
            State::Between(last) => match (byte, *last) {
                (b'"', last) => {
                    self.state = State::Plain {
                        start: self.extracted.text.len(),
                        escaped: false,
                        wanted: last == Last::Colon,
                    };
                }
                (b' ' | b'\t' | b'\r' | b'\n', _) => {}
                (b':', Last::Key) => *last = Last::Colon,
                _ => *last = Last::Other,
            },
            State::Plain { start, escaped, .. } if byte == b'"' && !*escaped => {
                let end = self.extracted.text.len() - 1;
                let is_key = self.extracted.text.get(*start..end) == Some(self.key.as_bytes());
                self.state = State::Between(if is_key { Last::Key } else { Last::Other });
            }
            State::Plain {
                start,
                escaped,
                wanted,
            } => {
                *escaped = byte == b'\\' && !*escaped;
                if *wanted && self.extracted.text.len() - *start > self.chars_max {
                    let begun = self.extracted.text.split_off(*start);
                    return self.extract(&begun, sink);
                }
            }
            State::Extracting(_) => {}
        }
        Ok(())
    }

    /// Starts extraction of a string that exceeded the limit; `begun` are its characters so far.
    fn extract(&mut self, begun: &[u8], sink: &mut dyn BytesSink) -> Result<(), ExtractError> {
        let placeholder = format!("{:032x}{:08x}", self.secret, self.extracted.placeholders.len());
        self.extracted.text.extend_from_slice(placeholder.as_bytes());
        self.extracted.placeholders.push(placeholder);
        let mut decoding = Decoding::default();
        decoding.push(begun, sink)?;
        self.state = State::Extracting(decoding);
        Ok(())
    }
}

/// An extracted string while its bytes are decoded.
#[derive(Debug, Default)]
struct Decoding {
    escape: Escape,
    /// Characters of an incomplete group.
    chars: Vec<u8>,
    padding: usize,
    is_over: bool,
}

#[derive(Clone, Copy, Debug, Default)]
enum Escape {
    #[default]
    None,
    Begun,
    /// A `\u` escape: the number of digits read, and their value.
    Number(u32, u32),
}

impl Decoding {
    /// Consumes the bytes of the string and returns what follows its end.
    fn push<'a>(&mut self, bytes: &'a [u8], sink: &mut dyn BytesSink) -> Result<&'a [u8], ExtractError> {
        for (at, byte) in bytes.iter().enumerate() {
            match (self.escape, *byte) {
                (Escape::None, b'"') => {
                    self.close(sink)?;
                    return Ok(bytes.get(at + 1..).unwrap_or_default());
                }
                (Escape::None, b'\\') => self.escape = Escape::Begun,
                (Escape::None, byte) => self.char(byte, sink)?,
                (Escape::Begun, b'u') => self.escape = Escape::Number(0, 0),
                (Escape::Begun, byte) => {
                    self.escape = Escape::None;
                    match byte {
                        b'/' => self.char(b'/', sink)?,
                        b'n' | b'r' | b't' => {}
                        _ => return Err(ExtractError::NotBase64),
                    }
                }
                (Escape::Number(known, value), digit) => {
                    let digit = char::from(digit).to_digit(16).ok_or(ExtractError::NotBase64)?;
                    let value = value * 16 + digit;
                    self.escape = Escape::Number(known + 1, value);
                    if known == 3 {
                        self.escape = Escape::None;
                        let byte = u8::try_from(value).map_err(|_| ExtractError::NotBase64)?;
                        self.char(byte, sink)?;
                    }
                }
            }
        }
        Ok(&[])
    }

    /// White space and the URL alphabet are accepted, as in all base64 of this crate.
    fn char(&mut self, byte: u8, sink: &mut dyn BytesSink) -> Result<(), ExtractError> {
        let byte = match byte {
            b'\n' | b'\r' | b'\t' | b' ' => return Ok(()),
            b'=' if self.padding < 2 => {
                self.padding += 1;
                return Ok(());
            }
            // Nothing follows padding.
            _ if self.padding > 0 => return Err(ExtractError::NotBase64),
            b'-' => b'+',
            b'_' => b'/',
            byte => byte,
        };
        self.chars.push(byte);
        match self.chars.len() {
            GROUP_CHARS => self.decode(sink),
            _ => Ok(()),
        }
    }

    fn decode(&mut self, sink: &mut dyn BytesSink) -> Result<(), ExtractError> {
        let bytes = TOLERANT
            .decode(&self.chars)
            .map_err(|_| ExtractError::NotBase64)?;
        self.chars.clear();
        Ok(sink.take(&bytes)?)
    }

    /// Padding may be missing; if present, it must be correct.
    fn close(&mut self, sink: &mut dyn BytesSink) -> Result<(), ExtractError> {
        if self.padding > 0 && !(self.chars.len() + self.padding).is_multiple_of(4) {
            return Err(ExtractError::NotBase64);
        }
        self.is_over = true;
        self.decode(sink)
    }
}
