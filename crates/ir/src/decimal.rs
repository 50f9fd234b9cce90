//! An amount of money in decimal notation. It is never converted to a binary float.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::limits::DECIMAL_DIGITS_MAX;

/// A decimal number: an optional minus sign, digits, and at most one decimal point between digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Decimal(String);

impl Decimal {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The exact sum, with as many decimal places as the more precise operand; `None` if it has too many
    /// digits.
    pub fn plus(&self, other: &Self) -> Option<Self> {
        let scale = self.fraction().len().max(other.fraction().len());
        let sum = self.scaled(scale)?.checked_add(other.scaled(scale)?)?;
        let sign = if sum < 0 { "-" } else { "" };
        let digits = format!("{:0width$}", sum.unsigned_abs(), width = scale + 1);
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        let point = if scale > 0 { "." } else { "" };
        format!("{sign}{whole}{point}{fraction}").parse().ok()
    }

    fn fraction(&self) -> &str {
        self.0.split_once('.').map_or("", |(_, fraction)| fraction)
    }

    /// The number times ten to the power of `scale`; `scale` is at least the number of decimal places.
    fn scaled(&self, scale: usize) -> Option<i128> {
        let missing = u32::try_from(scale.checked_sub(self.fraction().len())?).ok()?;
        let digits: i128 = self.0.replace('.', "").parse().ok()?;
        digits.checked_mul(10_i128.checked_pow(missing)?)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a decimal number")]
pub struct ParseDecimalError;

impl FromStr for Decimal {
    type Err = ParseDecimalError;

    fn from_str(text: &str) -> Result<Self, ParseDecimalError> {
        let digits = text.strip_prefix('-').unwrap_or(text);
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
        let good = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if good(whole) && good(fraction) && whole.len() + fraction.len() <= DECIMAL_DIGITS_MAX {
            Ok(Self(String::from(text)))
        } else {
            Err(ParseDecimalError)
        }
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Decimal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Decimal {
    /// A string, or a number whose shortest notation is a plain decimal.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = match Value::deserialize(deserializer)? {
            Value::String(text) => text,
            Value::Number(number) => number.to_string(),
            _ => return Err(serde::de::Error::custom(ParseDecimalError)),
        };
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sum_is_exact() {
        let sum = |one: &str, other: &str| {
            let (one, other): (Decimal, Decimal) = (one.parse().unwrap(), other.parse().unwrap());
            one.plus(&other).map(|sum| sum.to_string())
        };
        assert_eq!(sum("0.1", "0.2").as_deref(), Some("0.3"));
        assert_eq!(sum("0.00000285", "12").as_deref(), Some("12.00000285"));
        assert_eq!(sum("-0.5", "0.25").as_deref(), Some("-0.25"));
        assert_eq!(sum("1", "2").as_deref(), Some("3"));
        assert_eq!(sum(&"9".repeat(37), "0.01"), None, "too many digits");
    }
}
