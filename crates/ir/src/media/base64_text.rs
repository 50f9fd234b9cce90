//! Bytes as base64 text. All dialects carry base64, so the text is stored as received and decoded only
//! where the bytes are needed: a passthrough neither decodes nor changes it.

use std::io::{self, Read, Write};

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::read::DecoderReader;
use sha2::{Digest as _, Sha256};

const STRICT: GeneralPurpose = GeneralPurpose::new(&STANDARD, GeneralPurposeConfig::new());
/// Accepts missing padding and trailing bits: senders produce both, and the bytes are unambiguous.
const TOLERANT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Characters that [`Base64::head`] decodes.
const HEAD_CHARS: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base64(String);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not base64")]
pub struct InvalidBase64;

impl Base64 {
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(STRICT.encode(bytes))
    }

    /// Stores the text unchecked; invalid base64 is detected when it is decoded.
    pub fn from_text(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn push_str(&mut self, piece: &str) {
        self.0.push_str(piece);
    }

    /// The bytes. Accepts white space and the URL alphabet.
    pub fn decode(&self) -> Result<Vec<u8>, InvalidBase64> {
        if let Ok(bytes) = TOLERANT.decode(&self.0) {
            return Ok(bytes);
        }
        let mut plain = Vec::with_capacity(self.0.len());
        NormalizedBase64(self.0.as_bytes())
            .read_to_end(&mut plain)
            .map_err(|_| InvalidBase64)?;
        TOLERANT.decode(plain).map_err(|_| InvalidBase64)
    }

    /// Decodes into `out` without buffering all bytes in memory.
    pub fn decode_into(&self, out: &mut dyn Write) -> Result<u64, io::Error> {
        let mut decoder = DecoderReader::new(NormalizedBase64(self.0.as_bytes()), &TOLERANT);
        io::copy(&mut decoder, out)
    }

    pub fn into_string(self) -> String {
        self.0
    }

    /// Whether the text is the canonical standard base64 of its bytes.
    pub fn is_canonical(&self) -> bool {
        STRICT.decode(&self.0).is_ok()
    }

    /// The first bytes, for type detection.
    pub fn head(&self) -> Vec<u8> {
        let end = self.0.len().min(HEAD_CHARS) / 4 * 4;
        self.0
            .get(..end)
            .and_then(|head| TOLERANT.decode(head).ok())
            .unwrap_or_default()
    }

    pub fn sha256(&self) -> Result<String, InvalidBase64> {
        Ok(hex::encode(Sha256::digest(self.decode()?)))
    }
}

/// The text without white space and in the standard alphabet.
struct NormalizedBase64<'a>(&'a [u8]);

impl Read for NormalizedBase64<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while let (Some(slot), Some((byte, rest))) = (buffer.get_mut(filled), self.0.split_first()) {
            self.0 = rest;
            if byte.is_ascii_whitespace() {
                continue;
            }
            *slot = match byte {
                b'-' => b'+',
                b'_' => b'/',
                byte => *byte,
            };
            filled += 1;
        }
        Ok(filled)
    }
}
