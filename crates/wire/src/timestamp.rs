//! Points in time as RFC 3339 text, to the second and back. The calendar is the proleptic Gregorian one,
//! counted in days since 1970-01-01.

const DAY_SECONDS: i64 = 86_400;
/// The last second of the year 9999; later years do not fit the format.
const LAST: i64 = 253_402_300_799;

/// Unix seconds of a text like `2026-05-04T20:01:02.264968+02:00`. Fractions of a second are truncated.
pub(crate) fn parse(text: &str) -> Option<u64> {
    let number = |from: usize, to: usize| -> Option<i64> {
        let digits = text.get(from..to)?;
        let all = digits.bytes().all(|byte| byte.is_ascii_digit());
        all.then(|| digits.parse().ok())?
    };
    let sign = |at: usize, marks: &[u8]| text.as_bytes().get(at).is_some_and(|byte| marks.contains(byte));
    let marks = sign(4, b"-") && sign(7, b"-") && sign(10, b"Tt ") && sign(13, b":") && sign(16, b":");
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let sane =
        (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second < 61;
    if !marks || !sane {
        return None;
    }
    let rest = text.get(19..)?;
    let zone = match rest.strip_prefix('.') {
        Some(fraction) => fraction.trim_start_matches(|c: char| c.is_ascii_digit()),
        None => rest,
    };
    let seconds = days_of(year, month, day) * DAY_SECONDS + hour * 3600 + minute * 60 + second;
    u64::try_from(seconds - offset(zone)?).ok()
}

/// Unix seconds of a date in an HTTP header, such as `Sun, 06 Nov 1994 08:49:37 GMT`.
pub(crate) fn parse_http(text: &str) -> Option<u64> {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let (_, rest) = text.split_once(", ")?;
    let date = rest.strip_suffix(" GMT")?;
    let [day, month, year, clock] = *date.split(' ').collect::<Vec<_>>() else {
        return None;
    };
    let place = MONTHS.find(month).filter(|at| month.len() == 3 && at % 3 == 0)?;
    parse(&format!("{year}-{:02}-{day}T{clock}Z", place / 3 + 1))
}

/// `Z`, `+02:00`, `-07:00` in seconds.
fn offset(zone: &str) -> Option<i64> {
    if zone.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let (sign, rest) = match (zone.strip_prefix('+'), zone.strip_prefix('-')) {
        (Some(rest), _) => (1, rest),
        (_, Some(rest)) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':')?;
    let two = |text: &str| -> Option<i64> {
        let digits = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse().ok())?
    };
    let (hours, minutes) = (two(hours)?, two(minutes)?);
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

/// The text of a point in time, in UTC; `None` beyond the year 9999.
pub(crate) fn format(seconds: u64) -> Option<String> {
    let seconds = i64::try_from(seconds).ok().filter(|seconds| *seconds <= LAST)?;
    let (year, month, day) = date_of(seconds / DAY_SECONDS);
    let rest = seconds % DAY_SECONDS;
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    Some(format!(
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"
    ))
}

/// Years are counted from March, so that the leap day is the last of its year.
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month = (month + 9) % 12;
    365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468
}

fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::{format, parse, parse_http};

    #[test]
    fn known_points() {
        assert_eq!(parse("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(parse("2000-02-29T12:00:00.5+02:00"), Some(951_818_400));
        assert_eq!(parse("2023-08-04T08:52:19.385406455-07:00"), Some(1_691_164_339));
        assert_eq!(format(1_691_164_339).as_deref(), Some("2023-08-04T15:52:19Z"));
        assert_eq!(format(253_402_300_799).as_deref(), Some("9999-12-31T23:59:59Z"));
        assert_eq!(format(253_402_300_800), None);
        for wrong in [
            "",
            "2023-08-04",
            "2023-13-04T00:00:00Z",
            "2023-08-04T00:00:00",
            "é",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn parses_http_dates() {
        assert_eq!(parse_http("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(parse_http("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        for wrong in [
            "",
            "120",
            "Sun, 06 Nov 1994 08:49:37",
            "Sun, 06 ovD 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 GMT",
            "Sun, 99 Nov 1994 08:49:37 GMT",
        ] {
            assert_eq!(parse_http(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn format_and_parse_roundtrip() {
        for seconds in (0..253_402_300_799).step_by(86_399 * 97) {
            assert_eq!(format(seconds).and_then(|text| parse(&text)), Some(seconds));
        }
    }
}
