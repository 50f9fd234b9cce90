//! When a connection sends its requests, if the load has a rate.

use tokio::time::{Duration, Instant, sleep_until};

/// The scheduled times of one connection: the requests of all connections together are evenly spaced.
#[derive(Clone, Copy)]
pub(crate) struct Schedule {
    next: Instant,
    interval: Duration,
}

impl Schedule {
    #[expect(clippy::cast_precision_loss, reason = "there are few connections")]
    pub(crate) fn new(rate: f64, index: usize, connections: usize, start: Instant) -> Self {
        Self {
            next: start + Duration::from_secs_f64(index as f64 / rate),
            interval: Duration::from_secs_f64(connections as f64 / rate),
        }
    }

    /// Waits for the time of the next request and returns the time from which its latency counts: the scheduled
    /// time if the connection is behind, otherwise the present, because timers are late by up to a millisecond.
    pub(crate) async fn wait(&mut self) -> Instant {
        let scheduled = self.next();
        if scheduled <= Instant::now() {
            return scheduled;
        }
        sleep_until(scheduled).await;
        Instant::now()
    }

    fn next(&mut self) -> Instant {
        let next = self.next;
        self.next += self.interval;
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_all_connections_are_evenly_spaced() {
        let start = Instant::now();
        let mut schedules: Vec<_> = (0..4).map(|index| Schedule::new(8.0, index, 4, start)).collect();
        let mut times: Vec<_> = (0..3)
            .flat_map(|_| schedules.iter_mut().map(Schedule::next).collect::<Vec<_>>())
            .collect();
        times.sort();
        let gaps = times.windows(2).map(|pair| pair[1] - pair[0]);
        assert_eq!(gaps.collect::<Vec<_>>(), vec![Duration::from_millis(125); 11]);
        assert_eq!(times[0], start);
    }
}
