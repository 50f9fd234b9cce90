//! A rate in configuration notation (`60/m`) and its token bucket. Integer arithmetic, so there is no
//! drift; a clock that jumps back adds no tokens.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// `count` requests per `per_ms`, which may arrive in one burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Rate {
    pub count: u32,
    pub per_ms: u32,
}

const UNITS: [(&str, u32); 3] = [("s", 1_000), ("m", 60_000), ("h", 3_600_000)];

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a rate; write a count and a unit, as in 60/m, 5/s or 1000/h");
        let (count, unit) = text.split_once('/').ok_or_else(wrong)?;
        let count = count.trim().parse().map_err(|_| wrong())?;
        let known = UNITS.iter().find(|(name, _)| *name == unit.trim());
        let (_, per_ms) = known.ok_or_else(wrong)?;
        if count == 0 {
            return Err(format!("the rate `{text}` allows no requests"));
        }
        Ok(Self {
            count,
            per_ms: *per_ms,
        })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = UNITS.iter().find(|(_, per_ms)| *per_ms == self.per_ms);
        write!(f, "{}/{}", self.count, unit.map_or("?", |(name, _)| name))
    }
}

impl TryFrom<String> for Rate {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Rate> for String {
    fn from(rate: Rate) -> Self {
        rate.to_string()
    }
}

/// A token bucket. Its level is counted in fractions of a token, `per_ms` per token, so that each
/// millisecond adds exactly `count` of them.
#[derive(Clone, Debug)]
pub struct Bucket {
    rate: Rate,
    shares: u64,
    at_ms: u64,
}

impl Bucket {
    /// A full bucket.
    pub fn new(rate: Rate, now_ms: u64) -> Self {
        Self {
            rate,
            shares: Self::capacity(rate),
            at_ms: now_ms,
        }
    }

    pub fn rate(&self) -> Rate {
        self.rate
    }

    fn capacity(rate: Rate) -> u64 {
        u64::from(rate.count) * u64::from(rate.per_ms)
    }

    /// Takes one token, or returns the milliseconds until one is available.
    pub fn take(&mut self, now_ms: u64) -> Result<(), u64> {
        let (count, cost) = (u64::from(self.rate.count), u64::from(self.rate.per_ms));
        let elapsed_ms = now_ms.saturating_sub(self.at_ms);
        self.at_ms = self.at_ms.max(now_ms);
        let gained = elapsed_ms.saturating_mul(count);
        self.shares = self.shares.saturating_add(gained).min(Self::capacity(self.rate));
        match self.shares.checked_sub(cost) {
            Some(rest) => {
                self.shares = rest;
                Ok(())
            }
            None => Err((cost - self.shares).div_ceil(count)),
        }
    }

    /// Whether the bucket is full; a full bucket holds no state and can be dropped.
    pub fn is_full(&self, now_ms: u64) -> bool {
        let elapsed_ms = now_ms.saturating_sub(self.at_ms);
        let gained = elapsed_ms.saturating_mul(u64::from(self.rate.count));
        self.shares.saturating_add(gained) >= Self::capacity(self.rate)
    }
}
