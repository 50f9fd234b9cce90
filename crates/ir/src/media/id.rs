//! The id of stored media: one 128-bit value with three spellings. UUID and ULID encode the same bits, so
//! no table is needed; only ids issued by other systems need one.

use std::fmt;

use serde::{Deserialize, Serialize};
use ulid::Ulid;

use crate::dialect::Dialect;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct MediaId(u128);

/// Stored media, by its [`MediaId`] or by an id of another system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredRef {
    Id(MediaId),
    Foreign { dialect: Dialect, text: String },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a media id")]
pub struct ParseMediaIdError;

const URI: &str = "sms+file://";
/// An alternative spelling of the scheme. It is decoded and never encoded.
const URI_LATER: &str = "smsfile://";
const UPLOAD: &str = "upl_";

impl MediaId {
    pub const fn new(bits: u128) -> Self {
        Self(bits)
    }

    pub const fn bits(self) -> u128 {
        self.0
    }

    /// `018f6e5c-....`: content blocks and databases.
    pub fn uuid(self) -> String {
        let hex = format!("{:032x}", self.0);
        let piece = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
        [
            piece(0, 8),
            piece(8, 12),
            piece(12, 16),
            piece(16, 20),
            piece(20, 32),
        ]
        .join("-")
    }

    /// `sms+file://01J...`: canonical documents.
    pub fn uri(self) -> String {
        format!("{URI}{}", Ulid(self.0))
    }

    /// `upl_01J...`: uploads.
    pub fn upload(self) -> String {
        format!("{UPLOAD}{}", Ulid(self.0))
    }

    pub fn from_uuid(text: &str) -> Result<Self, ParseMediaIdError> {
        let dashes = [8, 13, 18, 23];
        let shaped = text.len() == 36
            && text
                .bytes()
                .enumerate()
                .all(|(at, byte)| (byte == b'-') == dashes.contains(&at));
        if !shaped {
            return Err(ParseMediaIdError);
        }
        let hex: String = text.chars().filter(|c| *c != '-').collect();
        let clean = hex.len() == 32 && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !clean {
            return Err(ParseMediaIdError);
        }
        u128::from_str_radix(&hex, 16)
            .map(Self)
            .map_err(|_| ParseMediaIdError)
    }

    pub fn from_uri(text: &str) -> Result<Self, ParseMediaIdError> {
        let ulid = text
            .strip_prefix(URI)
            .or_else(|| text.strip_prefix(URI_LATER))
            .ok_or(ParseMediaIdError)?;
        Self::from_ulid(ulid)
    }

    pub fn from_upload(text: &str) -> Result<Self, ParseMediaIdError> {
        Self::from_ulid(text.strip_prefix(UPLOAD).ok_or(ParseMediaIdError)?)
    }

    /// Accepts only the canonical spelling; other spellings are foreign ids.
    fn from_ulid(text: &str) -> Result<Self, ParseMediaIdError> {
        let ulid = Ulid::from_string(text).map_err(|_| ParseMediaIdError)?;
        if ulid.to_string() == text {
            Ok(Self(ulid.0))
        } else {
            Err(ParseMediaIdError)
        }
    }
}

impl fmt::Display for MediaId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.uuid())
    }
}

impl From<MediaId> for String {
    fn from(id: MediaId) -> Self {
        id.uuid()
    }
}

impl TryFrom<String> for MediaId {
    type Error = ParseMediaIdError;

    fn try_from(text: String) -> Result<Self, ParseMediaIdError> {
        Self::from_uuid(&text)
    }
}

impl StoredRef {
    pub fn from_uri(text: &str) -> Self {
        MediaId::from_uri(text).map_or_else(|_| Self::foreign(Dialect::MediaRef, text), Self::Id)
    }

    pub fn from_upload(text: &str) -> Self {
        MediaId::from_upload(text).map_or_else(|_| Self::foreign(Dialect::Cognitive, text), Self::Id)
    }

    pub fn from_uuid(text: &str) -> Self {
        match MediaId::from_uuid(text) {
            Ok(id) if id.uuid() == text => Self::Id(id),
            _ => Self::foreign(Dialect::ContentBlock, text),
        }
    }

    fn foreign(dialect: Dialect, text: &str) -> Self {
        Self::Foreign {
            dialect,
            text: String::from(text),
        }
    }
}
