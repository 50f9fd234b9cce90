//! The text of a key: `cogn_`, a public id that identifies the record, and 256 random bits.
//!
//! The SHA-256 of these bits is stored without salt and without key stretching: both slow down guessing of
//! passwords that people choose, and 256 random bits cannot be guessed at any speed. A slow hash would only
//! slow down requests.

use std::fmt;
use std::str::FromStr;

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

const PREFIX: &str = "cogn_";
const ID_BYTES: usize = 6;
const SECRET_BYTES: usize = 32;

/// The public part of a key, which may be shown, logged and searched.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeyId(String);

impl KeyId {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The format shown in lists, with or without the key prefix.
impl FromStr for KeyId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let id = text.strip_prefix(PREFIX).unwrap_or(text);
        if id.len() == 2 * ID_BYTES && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            Ok(Self(String::from(id)))
        } else {
            Err(format!(
                "`{id}` is not a key id; `cogn keys list` shows all key ids"
            ))
        }
    }
}

/// A complete key, as sent by a client. Its debug output is redacted.
#[derive(Debug)]
pub struct Secret {
    pub id: KeyId,
    bits: SecretString,
}

impl Secret {
    /// From cryptographically random bytes.
    pub fn from_random(id: [u8; ID_BYTES], bits: [u8; SECRET_BYTES]) -> Self {
        Self {
            id: KeyId(hex::encode(id)),
            bits: SecretString::from(hex::encode(bits)),
        }
    }

    /// `None` if the text does not have the format of a key.
    pub fn parse(text: &str) -> Option<Self> {
        let (id, bits) = text.strip_prefix(PREFIX)?.split_once('_')?;
        let id = id.parse().ok()?;
        let is_hex = bits.bytes().all(|byte| byte.is_ascii_hexdigit());
        if bits.len() != 2 * SECRET_BYTES || !is_hex {
            return None;
        }
        Some(Self {
            id,
            bits: SecretString::from(bits),
        })
    }

    /// The full text, for showing it once at creation. No other function exposes the secret.
    pub fn reveal(&self) -> SecretString {
        SecretString::from(format!("{PREFIX}{}_{}", self.id, self.bits.expose_secret()))
    }

    /// The stored hash.
    pub fn hash(&self) -> String {
        hex::encode(Sha256::digest(self.bits.expose_secret().as_bytes()))
    }

    /// Compares in constant time.
    pub fn matches(&self, hash: &str) -> bool {
        let own = self.hash();
        let differing = own.bytes().zip(hash.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b));
        own.len() == hash.len() && differing == 0
    }
}
