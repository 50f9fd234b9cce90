//! Circuit breaker of one instance: opens after enough failures for a while, then one probe decides whether
//! it closes. No IO; time is an argument.

use super::settings::Breaker as Settings;

/// Smoothing factor of the failure ratio: about the last twenty calls count.
const FORGET: f64 = 0.1;
/// Fewer calls than this do not give a meaningful ratio.
const CALLS_MIN: u32 = 20;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Breaker {
    consecutive_failures: u32,
    failure_share: f64,
    calls: u32,
    /// Duration of the last open state; 0 after a recovery.
    last_open_ms: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed,
    /// No call before `until_ms`, then one probe.
    Open {
        until_ms: u64,
        probe: bool,
    },
}

impl Breaker {
    pub(super) fn new() -> Self {
        Self {
            consecutive_failures: 0,
            failure_share: 0.0,
            calls: 0,
            last_open_ms: 0,
            state: State::Closed,
        }
    }

    /// When the next call is allowed: 0 at any time, `u64::MAX` while a probe is in flight.
    pub(super) fn ready_ms(&self) -> u64 {
        match self.state {
            State::Closed => 0,
            State::Open { probe: true, .. } => u64::MAX,
            State::Open { until_ms, .. } => until_ms,
        }
    }

    /// Allows or rejects a call. The first call after the open state is the probe.
    pub(super) fn admit(&mut self, now_ms: u64) -> BreakerDecision {
        match &mut self.state {
            State::Closed => BreakerDecision::Allow,
            State::Open { until_ms, probe } if now_ms >= *until_ms && !*probe => {
                *probe = true;
                BreakerDecision::Probe
            }
            State::Open { .. } => BreakerDecision::Reject,
        }
    }

    /// Records a success and closes the breaker.
    pub(super) fn succeed(&mut self) {
        self.count(false);
        self.consecutive_failures = 0;
        if self.state != State::Closed {
            self.failure_share = 0.0;
            self.calls = 0;
        }
        self.state = State::Closed;
        self.last_open_ms = 0;
    }

    /// Records a failed request that the back-end answered. It closes an open breaker, and does not count in
    /// a closed one, where it would hide failures.
    pub(super) fn answer(&mut self) {
        if self.state != State::Closed {
            self.succeed();
        }
    }

    /// Records a failure.
    pub(super) fn fail(&mut self, now_ms: u64, settings: &Settings) {
        self.count(true);
        self.consecutive_failures += 1;
        let probe_failed = matches!(self.state, State::Open { probe: true, .. });
        let too_many = self.consecutive_failures >= settings.failures
            || self.calls >= CALLS_MIN && self.failure_share >= settings.failure_share;
        if probe_failed || self.state == State::Closed && too_many {
            let open_ms = match self.last_open_ms {
                0 => settings.open_ms,
                last => last.saturating_mul(2),
            };
            let open_ms = open_ms.min(settings.open_max_ms);
            self.last_open_ms = open_ms;
            self.state = State::Open {
                until_ms: now_ms + open_ms,
                probe: false,
            };
        }
    }

    /// The probe ended without a result; the next call is the probe.
    pub(super) fn release_probe(&mut self) {
        if let State::Open { probe, .. } = &mut self.state {
            *probe = false;
        }
    }

    fn count(&mut self, failed: bool) {
        let failed = if failed { 1.0 } else { 0.0 };
        self.calls = self.calls.saturating_add(1);
        self.failure_share += FORGET * (failed - self.failure_share);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BreakerDecision {
    Allow,
    Probe,
    Reject,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Breaker, BreakerDecision};
    use crate::fleet::settings::Breaker as Settings;

    fn broken() -> (Breaker, Settings) {
        let settings = Settings::default();
        let mut breaker = Breaker::new();
        for _ in 0..settings.failures {
            assert_eq!(breaker.admit(0), BreakerDecision::Allow);
            breaker.fail(0, &settings);
        }
        (breaker, settings)
    }

    #[test]
    fn opens_after_consecutive_failures_and_one_probe_decides() {
        let (mut breaker, settings) = broken();
        assert_eq!(breaker.admit(settings.open_ms - 1), BreakerDecision::Reject);
        assert_eq!(breaker.admit(settings.open_ms), BreakerDecision::Probe);
        assert_eq!(
            breaker.admit(settings.open_ms),
            BreakerDecision::Reject,
            "one probe at a time"
        );
        breaker.succeed();
        assert_eq!(breaker.admit(settings.open_ms), BreakerDecision::Allow);
    }

    #[test]
    fn failed_probes_double_the_open_time_up_to_the_maximum() {
        let (mut breaker, settings) = broken();
        let mut pauses = Vec::new();
        let mut now = settings.open_ms;
        for _ in 0..6 {
            assert_eq!(breaker.admit(now), BreakerDecision::Probe);
            breaker.fail(now, &settings);
            pauses.push(breaker.ready_ms() - now);
            now = breaker.ready_ms();
        }
        assert_eq!(pauses, [20_000, 40_000, 80_000, 120_000, 120_000, 120_000]);
    }

    #[test]
    fn probe_without_a_result_is_released() {
        let (mut breaker, settings) = broken();
        assert_eq!(breaker.admit(settings.open_ms), BreakerDecision::Probe);
        breaker.release_probe();
        assert_eq!(breaker.admit(settings.open_ms), BreakerDecision::Probe);
    }

    #[test]
    fn answered_error_closes_an_open_breaker_and_changes_no_closed_one() {
        let (mut breaker, settings) = broken();
        assert_eq!(breaker.admit(settings.open_ms), BreakerDecision::Probe);
        breaker.answer();
        assert_eq!(breaker.admit(settings.open_ms), BreakerDecision::Allow);
        let before = breaker;
        breaker.answer();
        assert_eq!(breaker, before);
    }

    proptest! {
        /// A failure ratio of one half opens the breaker without a run of failures; one in ten does not.
        #[test]
        fn opens_on_failure_ratio(offset in 0usize..7) {
            let settings = Settings { failures: u32::MAX, ..Settings::default() };
            let opens = |every: usize| {
                let mut breaker = Breaker::new();
                for call in 0..400 {
                    if breaker.admit(0) != BreakerDecision::Allow {
                        return true;
                    }
                    if (call + offset) % every == 0 { breaker.fail(0, &settings) } else { breaker.succeed() }
                }
                false
            };
            prop_assert!(opens(1));
            prop_assert!(opens(2));
            prop_assert!(!opens(10));
        }
    }
}
