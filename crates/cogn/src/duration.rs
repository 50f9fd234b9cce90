//! Durations on the command line: `500ms`, `30s`, `2m`, `1h30m`, `30d`.

use std::str::FromStr;

/// A duration of at least one millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Duration {
    millis: u64,
}

impl Duration {
    pub(crate) fn as_millis(self) -> u64 {
        self.millis
    }
}

impl FromStr for Duration {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a valid duration; use 500ms, 30s, 2m, 1h30m or 30d");
        let mut rest = text.trim();
        let mut millis = 0_u64;
        while !rest.is_empty() {
            let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let (number, after) = rest.split_at(digits);
            let letters = after.len() - after.trim_start_matches(|c: char| c.is_ascii_alphabetic()).len();
            let (unit, after) = after.split_at(letters);
            let unit_millis = match unit {
                "ms" => 1,
                "s" => 1_000,
                "m" | "min" => 60_000,
                "h" => 3_600_000,
                "d" => 86_400_000,
                _ => return Err(wrong()),
            };
            let number: u64 = number.parse().map_err(|_| wrong())?;
            millis = number
                .checked_mul(unit_millis)
                .and_then(|part| millis.checked_add(part))
                .ok_or_else(wrong)?;
            rest = after.trim_start();
        }
        if millis == 0 {
            return Err(wrong());
        }
        Ok(Self { millis })
    }
}

#[cfg(test)]
mod tests {
    use super::Duration;

    #[test]
    fn parses_durations_with_units() {
        for (text, millis) in [
            ("500ms", 500),
            ("30s", 30_000),
            ("2m", 120_000),
            ("2min", 120_000),
            ("1h30m", 5_400_000),
            ("1m 30s", 90_000),
            ("30d", 2_592_000_000),
        ] {
            assert_eq!(text.parse::<Duration>().map(Duration::as_millis), Ok(millis));
        }
        for text in [
            "",
            "0s",
            "30",
            "s",
            "-1s",
            "1.5s",
            "5 parsecs",
            "99999999999999999999h",
        ] {
            assert!(text.parse::<Duration>().is_err(), "{text}");
        }
    }
}
