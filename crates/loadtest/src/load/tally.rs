//! Counts of one connection, and their sum.

use serde_json::{Value, json};

#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) good: u64,
    /// Refused, interrupted, or without terminator.
    pub(crate) bad: u64,
    pub(crate) tokens: u64,
    pub(crate) reads: u64,
    /// Microseconds from the request to the end of the response.
    pub(crate) whole_us: Vec<u64>,
    /// Microseconds to the first token.
    pub(crate) first_us: Vec<u64>,
    /// Microseconds between two reads with tokens.
    pub(crate) gap_us: Vec<u64>,
    pub(crate) complaint: Option<String>,
}

impl Tally {
    pub(crate) fn add(&mut self, other: Self) {
        self.good += other.good;
        self.bad += other.bad;
        self.tokens += other.tokens;
        self.reads += other.reads;
        self.whole_us.extend(other.whole_us);
        self.first_us.extend(other.first_us);
        self.gap_us.extend(other.gap_us);
        self.complaint = self.complaint.take().or(other.complaint);
    }

    pub(crate) fn fail(&mut self, complaint: impl FnOnce() -> String) {
        self.bad += 1;
        self.complaint.get_or_insert_with(complaint);
    }

    #[expect(clippy::cast_precision_loss, reason = "figures for people")]
    pub(crate) fn show(mut self, seconds: f64, cpu_us: Option<u64>) -> Value {
        let per = |count: u64| {
            let cpu = cpu_us.filter(|_| count > 0)?;
            Some((cpu as f64 / count as f64 * 100.0).round() / 100.0)
        };
        json!({
            "good": self.good,
            "bad": self.bad,
            "per_second": (self.good as f64 / seconds).round(),
            "whole_us": spread(&mut self.whole_us),
            "first_us": spread(&mut self.first_us),
            "gap_us": spread(&mut self.gap_us),
            "tokens": self.tokens,
            "reads": self.reads,
            "cpu_us_per_request": per(self.good + self.bad),
            "cpu_us_per_token": per(self.tokens),
            "complaint": self.complaint,
        })
    }
}

/// Median, 99th percentile and maximum; `null` without measurements.
fn spread(values: &mut [u64]) -> Value {
    values.sort_unstable();
    let at = |share: usize| values.get(values.len().saturating_sub(1) * share / 1000);
    json!({"p50": at(500), "p99": at(990), "max": at(1000)})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_without_measurements_is_null() {
        assert_eq!(spread(&mut []), json!({"p50": null, "p99": null, "max": null}));
        let mut numbers: Vec<u64> = (0..=100).rev().collect();
        assert_eq!(spread(&mut numbers), json!({"p50": 50, "p99": 99, "max": 100}));
    }
}
