//! A log line that is written at most once per interval, with the number of occurrences since the last one.

use std::time::Duration;

use tokio::time::Instant;

#[derive(Debug)]
pub(super) struct LogLimit {
    interval: Duration,
    next: Option<Instant>,
    count: u64,
}

impl LogLimit {
    pub(super) fn new(interval: Duration) -> Self {
        Self {
            interval,
            next: None,
            count: 0,
        }
    }

    /// Counts an occurrence. Returns the number to log, if the line is to be written now.
    pub(super) fn count(&mut self, now: Instant) -> Option<u64> {
        self.count += 1;
        if self.next.is_some_and(|next| now < next) {
            return None;
        }
        self.next = Some(now + self.interval);
        Some(std::mem::take(&mut self.count))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::LogLimit;

    #[test]
    fn writes_once_per_interval_with_the_count() {
        let mut limit = LogLimit::new(Duration::from_secs(10));
        let start = Instant::now();
        assert_eq!(limit.count(start), Some(1));
        for second in 1..10 {
            assert_eq!(limit.count(start + Duration::from_secs(second)), None);
        }
        assert_eq!(limit.count(start + Duration::from_secs(10)), Some(10));
    }
}
