//! Typed identifiers.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize, Serializer};
use ulid::{ULID_LEN, Ulid};

/// The id of a run, which clients call a stream session: `sess_` and a ULID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct RunId(Ulid);

impl RunId {
    const PREFIX: &str = "sess_";
    const LEN: usize = Self::PREFIX.len() + ULID_LEN;

    /// From a time in milliseconds and 80 random bits, both supplied by the caller.
    pub fn from_parts(at_ms: u64, random: u128) -> Self {
        Self(Ulid::from_parts(at_ms, random))
    }

    /// Creation time in milliseconds since 1970.
    pub fn at_ms(self) -> u64 {
        self.0.timestamp_ms()
    }

    /// The id as a unique number.
    pub fn number(self) -> u128 {
        self.0.0
    }

    /// A seed for random decisions about the run, reproducible from its id.
    pub fn seed(self) -> u64 {
        // The low bits are the random bits.
        self.0.0 as u64
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::PREFIX)?;
        f.write_str(self.0.array_to_str(&mut [0; ULID_LEN]))
    }
}

impl Serialize for RunId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&String::from(*self))
    }
}

impl FromStr for RunId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        let ulid = text.strip_prefix(Self::PREFIX).ok_or(ParseIdError)?;
        Ulid::from_string(ulid).map(Self).map_err(|_| ParseIdError)
    }
}

impl From<RunId> for String {
    fn from(id: RunId) -> Self {
        let mut text = Self::with_capacity(RunId::LEN);
        text.push_str(RunId::PREFIX);
        text.push_str(id.0.array_to_str(&mut [0; ULID_LEN]));
        text
    }
}

impl TryFrom<String> for RunId {
    type Error = ParseIdError;

    fn try_from(text: String) -> Result<Self, ParseIdError> {
        text.parse()
    }
}

/// The text is not an id of this kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an id of this kind")]
pub struct ParseIdError;
