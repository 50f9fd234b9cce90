//! Long base64 lifted out of a JSON text while the text arrives. Pieces go in at any border; the text comes
//! out with a short stand-in for every long string under one key, and the bytes that such a string spells go
//! to a taker. Nothing of it is held but the text, and of a string no more than shows that it is long.
//!
//! This judges no JSON: what is left is read by a parser, and what is broken breaks there. A stand-in ends in
//! a number that nobody outside can foresee, so that no text of a server is taken for one.

use std::io;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Padding is counted here, and trailing bits may be set: senders do that, and the bytes are clear.
const TOLERANT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireNone),
);

/// How many characters are decoded at a time: whole groups of four.
const GROUP_CHARS: usize = 16 * 1024;

/// Who takes the bytes of lifted strings, one string after another.
pub trait Taker {
    /// More bytes of the string that is open; the first ones open it.
    fn take(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// The string is whole.
    fn close(&mut self) -> io::Result<()>;
}

#[derive(Debug, thiserror::Error)]
pub enum LiftError {
    #[error("a long string is not base64")]
    NotBase64,
    #[error("the text ends inside of a string")]
    Truncated,
    /// What the taker says.
    #[error(transparent)]
    Taker(#[from] io::Error),
}

/// A text without its long strings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lifted {
    pub text: Vec<u8>,
    /// What stands for each, in the order in which they were taken.
    pub stand_ins: Vec<String>,
}

#[derive(Debug)]
pub struct Lift {
    key: &'static str,
    chars_max: usize,
    secret: u128,
    state: State,
    lifted: Lifted,
}

#[derive(Debug)]
enum State {
    /// Outside of strings: what was read last.
    Between(Last),
    /// In a string that stays.
    Plain {
        start: usize,
        escaped: bool,
        /// It is the value of the key, and lifted if it grows long.
        wanted: bool,
    },
    Lifting(Decoding),
}

/// What decides whether the next string is a value of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    Other,
    /// A string that reads as the key.
    Key,
    /// The key, and a colon behind it.
    Colon,
}

impl Lift {
    /// Strings under `key` of more than `chars_max` characters are lifted. `secret` is new for every text.
    pub fn new(key: &'static str, chars_max: usize, secret: u128) -> Self {
        Self {
            key,
            chars_max,
            secret,
            state: State::Between(Last::Other),
            lifted: Lifted::default(),
        }
    }

    /// How much text is held so far.
    pub fn text_bytes(&self) -> usize {
        self.lifted.text.len()
    }

    pub fn push(&mut self, bytes: &[u8], taker: &mut dyn Taker) -> Result<(), LiftError> {
        let mut left = bytes;
        while let Some((byte, rest)) = left.split_first() {
            if let State::Lifting(decoding) = &mut self.state {
                left = decoding.push(left, taker)?;
                if decoding.is_over {
                    taker.close()?;
                    self.lifted.text.push(b'"');
                    self.state = State::Between(Last::Other);
                }
                continue;
            }
            left = rest;
            self.lifted.text.push(*byte);
            self.step(*byte, taker)?;
        }
        Ok(())
    }

    pub fn finish(self) -> Result<Lifted, LiftError> {
        match self.state {
            State::Between(_) => Ok(self.lifted),
            State::Plain { .. } | State::Lifting(_) => Err(LiftError::Truncated),
        }
    }

    /// One byte of text that is already written down.
    fn step(&mut self, byte: u8, taker: &mut dyn Taker) -> Result<(), LiftError> {
        match &mut self.state {
            State::Between(last) => match (byte, *last) {
                (b'"', last) => {
                    self.state = State::Plain {
                        start: self.lifted.text.len(),
                        escaped: false,
                        wanted: last == Last::Colon,
                    };
                }
                (b' ' | b'\t' | b'\r' | b'\n', _) => {}
                (b':', Last::Key) => *last = Last::Colon,
                _ => *last = Last::Other,
            },
            State::Plain { start, escaped, .. } if byte == b'"' && !*escaped => {
                let end = self.lifted.text.len() - 1;
                let is_key = self.lifted.text.get(*start..end) == Some(self.key.as_bytes());
                self.state = State::Between(if is_key { Last::Key } else { Last::Other });
            }
            State::Plain {
                start,
                escaped,
                wanted,
            } => {
                *escaped = byte == b'\\' && !*escaped;
                if *wanted && self.lifted.text.len() - *start > self.chars_max {
                    let begun = self.lifted.text.split_off(*start);
                    return self.lift(&begun, taker);
                }
            }
            State::Lifting(_) => {}
        }
        Ok(())
    }

    /// A string has grown too long to stay: what was read of it is the first that is taken.
    fn lift(&mut self, begun: &[u8], taker: &mut dyn Taker) -> Result<(), LiftError> {
        let stand_in = format!("{:032x}{:08x}", self.secret, self.lifted.stand_ins.len());
        self.lifted.text.extend_from_slice(stand_in.as_bytes());
        self.lifted.stand_ins.push(stand_in);
        let mut decoding = Decoding::default();
        decoding.push(begun, taker)?;
        self.state = State::Lifting(decoding);
        Ok(())
    }
}

/// A string while its bytes are taken.
#[derive(Debug, Default)]
struct Decoding {
    escape: Escape,
    /// Characters that wait for a whole group.
    chars: Vec<u8>,
    padding: usize,
    is_over: bool,
}

#[derive(Clone, Copy, Debug, Default)]
enum Escape {
    #[default]
    None,
    Begun,
    /// A character by its number: how many digits of it are known, and what they say.
    Number(u32, u32),
}

impl Decoding {
    /// Takes what belongs to the string and gives back what follows its end.
    fn push<'a>(&mut self, bytes: &'a [u8], taker: &mut dyn Taker) -> Result<&'a [u8], LiftError> {
        for (at, byte) in bytes.iter().enumerate() {
            match (self.escape, *byte) {
                (Escape::None, b'"') => {
                    self.close(taker)?;
                    return Ok(bytes.get(at + 1..).unwrap_or_default());
                }
                (Escape::None, b'\\') => self.escape = Escape::Begun,
                (Escape::None, byte) => self.char(byte, taker)?,
                (Escape::Begun, b'u') => self.escape = Escape::Number(0, 0),
                (Escape::Begun, byte) => {
                    self.escape = Escape::None;
                    match byte {
                        b'/' => self.char(b'/', taker)?,
                        b'n' | b'r' | b't' => {}
                        _ => return Err(LiftError::NotBase64),
                    }
                }
                (Escape::Number(known, value), digit) => {
                    let digit = char::from(digit).to_digit(16).ok_or(LiftError::NotBase64)?;
                    let value = value * 16 + digit;
                    self.escape = Escape::Number(known + 1, value);
                    if known == 3 {
                        self.escape = Escape::None;
                        let byte = u8::try_from(value).map_err(|_| LiftError::NotBase64)?;
                        self.char(byte, taker)?;
                    }
                }
            }
        }
        Ok(&[])
    }

    /// White space and the URL alphabet are understood, as everywhere.
    fn char(&mut self, byte: u8, taker: &mut dyn Taker) -> Result<(), LiftError> {
        let byte = match byte {
            b'\n' | b'\r' | b'\t' | b' ' => return Ok(()),
            b'=' if self.padding < 2 => {
                self.padding += 1;
                return Ok(());
            }
            // Nothing follows padding.
            _ if self.padding > 0 => return Err(LiftError::NotBase64),
            b'-' => b'+',
            b'_' => b'/',
            byte => byte,
        };
        self.chars.push(byte);
        match self.chars.len() {
            GROUP_CHARS => self.decode(taker),
            _ => Ok(()),
        }
    }

    fn decode(&mut self, taker: &mut dyn Taker) -> Result<(), LiftError> {
        let bytes = TOLERANT.decode(&self.chars).map_err(|_| LiftError::NotBase64)?;
        self.chars.clear();
        Ok(taker.take(&bytes)?)
    }

    /// Padding may be missing; where it stands, it is right.
    fn close(&mut self, taker: &mut dyn Taker) -> Result<(), LiftError> {
        if self.padding > 0 && !(self.chars.len() + self.padding).is_multiple_of(4) {
            return Err(LiftError::NotBase64);
        }
        self.is_over = true;
        self.decode(taker)
    }
}
