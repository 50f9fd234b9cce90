//! Numbers, read as by `serde_json`: integers while they fit, all others as the nearest float; infinite
//! values are refused.

use serde_json::Number;

use super::error::JsonErrorKind;

/// Whether a byte can occur in a number.
pub(super) fn is_part(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')
}

pub(super) fn read(token: &[u8]) -> Result<Number, JsonErrorKind> {
    let (negative, digits) = match token {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, token),
    };
    let whole = digit_count(digits);
    if whole == 0 || (whole > 1 && digits[0] == b'0') {
        return Err(JsonErrorKind::BadNumber);
    }
    let mut rest = &digits[whole..];
    if rest.is_empty()
        && let Some(number) = integer(digits, negative)
    {
        return Ok(number);
    }
    if let [b'.', fraction @ ..] = rest {
        let count = digit_count(fraction);
        if count == 0 {
            return Err(JsonErrorKind::BadNumber);
        }
        rest = &fraction[count..];
    }
    if let [b'e' | b'E', exponent @ ..] = rest {
        let exponent = match exponent {
            [b'+' | b'-', digits @ ..] => digits,
            _ => exponent,
        };
        let count = digit_count(exponent);
        if count == 0 {
            return Err(JsonErrorKind::BadNumber);
        }
        rest = &exponent[count..];
    }
    if !rest.is_empty() {
        return Err(JsonErrorKind::BadNumber);
    }
    let text = std::str::from_utf8(token).map_err(|_| JsonErrorKind::BadNumber)?;
    let float: f64 = text.parse().map_err(|_| JsonErrorKind::BadNumber)?;
    Number::from_f64(float).ok_or(JsonErrorKind::NumberRange)
}

fn digit_count(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(bytes.len())
}

fn integer(digits: &[u8], negative: bool) -> Option<Number> {
    let magnitude = digits.iter().try_fold(0u64, |sum, digit| {
        sum.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
    })?;
    if !negative {
        return Some(Number::from(magnitude));
    }
    // Minus zero is a float, since integers do not keep its sign.
    let value = 0i64.checked_sub_unsigned(magnitude)?;
    (value != 0).then(|| Number::from(value))
}
