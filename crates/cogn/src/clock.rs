//! The only place in the commands that reads the wall clock; other code gets the time as a parameter.

use std::time::{SystemTime, UNIX_EPOCH};

/// The current time in UTC, as used in the names of backups: `20260131T235959Z`.
pub(crate) fn stamp() -> String {
    #[expect(
        clippy::disallowed_methods,
        reason = "a backup is named after the real time, and this is where it is read"
    )]
    let now = SystemTime::now();
    let seconds = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    stamp_of(seconds)
}

/// The date of a time in UTC: `2026-01-31`.
pub(crate) fn date(at_ms: u64) -> String {
    let (year, month, day) = date_of(at_ms / 86_400_000);
    format!("{year:04}-{month:02}-{day:02}")
}

/// A time in UTC, to the minute: `2026-01-31 23:59`.
pub(crate) fn minute(at_ms: u64) -> String {
    let minutes = at_ms / 60_000;
    format!("{} {:02}:{:02}", date(at_ms), minutes / 60 % 24, minutes % 60)
}

fn stamp_of(seconds: u64) -> String {
    let (year, month, day) = date_of(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

/// The date of a day counted from 1970-01-01, in the Gregorian calendar. Years are taken to begin in
/// March, so that the leap day is the last of its year and every month's start is a formula.
fn date_of(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::{minute, stamp_of};

    #[test]
    fn formats_minutes() {
        assert_eq!(minute(951_782_399_999), "2000-02-28 23:59");
        assert_eq!(minute(0), "1970-01-01 00:00");
    }

    #[test]
    fn formats_timestamps_across_leap_days() {
        for (seconds, name) in [
            (0, "19700101T000000Z"),
            (951_782_399, "20000228T235959Z"),
            (951_782_400, "20000229T000000Z"),
            (1_709_251_199, "20240229T235959Z"),
            (1_767_225_600, "20260101T000000Z"),
            (4_107_542_399, "21000228T235959Z"),
            (4_107_542_400, "21000301T000000Z"),
        ] {
            assert_eq!(stamp_of(seconds), name);
        }
    }
}
