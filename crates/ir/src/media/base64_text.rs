//! Bytes as base64 text. Every edge speaks base64, so the text is kept as it came and decoded only by
//! those who need the bytes: what passes through is neither decoded nor changed.

use std::io::{self, Read, Write};

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::read::DecoderReader;
use sha2::{Digest as _, Sha256};

const STRICT: GeneralPurpose = GeneralPurpose::new(&STANDARD, GeneralPurposeConfig::new());
/// Padding may be missing and trailing bits may be set: senders do both, and the bytes are clear.
const TOLERANT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// How many characters a look at the first bytes decodes.
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

    /// Takes the text as it is; whether it is base64 shows when it is decoded.
    pub fn from_text(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn push_str(&mut self, piece: &str) {
        self.0.push_str(piece);
    }

    /// The bytes. White space and the URL alphabet are understood too.
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

    /// The same bytes written elsewhere, without standing in memory as a whole.
    pub fn decode_into(&self, out: &mut dyn Write) -> Result<u64, io::Error> {
        let mut decoder = DecoderReader::new(NormalizedBase64(self.0.as_bytes()), &TOLERANT);
        io::copy(&mut decoder, out)
    }

    pub fn into_string(self) -> String {
        self.0
    }

    /// Whether this is the one spelling that the bytes have in standard base64.
    pub fn is_canonical(&self) -> bool {
        STRICT.decode(&self.0).is_ok()
    }

    /// The first bytes, for a look at what they are.
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

/// The text without white space and in the usual alphabet.
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
