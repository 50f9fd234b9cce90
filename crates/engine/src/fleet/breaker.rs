//! The circuit breaker of one instance: after enough failures it is left alone for a while, then one call
//! finds out whether it is back. Pure: time comes in as a number.

use super::settings::Breaker as Settings;

/// How fast old calls are forgotten in the share of failures: about the last twenty count.
const FORGET: f64 = 0.1;
/// Fewer calls than this say nothing about a share.
const CALLS_MIN: u32 = 20;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Breaker {
    in_a_row: u32,
    failure_share: f64,
    calls: u32,
    /// How long it was open the last time; 0 when it has recovered since.
    last_open_ms: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed,
    /// Nobody may call before this; then one may.
    Open {
        until_ms: u64,
        trial: bool,
    },
}

impl Breaker {
    pub(super) fn new() -> Self {
        Self {
            in_a_row: 0,
            failure_share: 0.0,
            calls: 0,
            last_open_ms: 0,
            state: State::Closed,
        }
    }

    /// When the next call may go out: 0 at any time, `u64::MAX` while a trial is under way.
    pub(super) fn ready_ms(&self) -> u64 {
        match self.state {
            State::Closed => 0,
            State::Open { trial: true, .. } => u64::MAX,
            State::Open { until_ms, .. } => until_ms,
        }
    }

    /// Lets a call pass, or not. The first one after the pause is the trial.
    pub(super) fn admit(&mut self, now_ms: u64) -> BreakerDecision {
        match &mut self.state {
            State::Closed => BreakerDecision::Allow,
            State::Open { until_ms, trial } if now_ms >= *until_ms && !*trial => {
                *trial = true;
                BreakerDecision::Probe
            }
            State::Open { .. } => BreakerDecision::Reject,
        }
    }

    /// The instance is alive.
    pub(super) fn succeed(&mut self) {
        self.count(false);
        self.in_a_row = 0;
        if self.state != State::Closed {
            self.failure_share = 0.0;
            self.calls = 0;
        }
        self.state = State::Closed;
        self.last_open_ms = 0;
    }

    /// It failed; `at_once` opens the circuit whatever came before, as for a key that is refused.
    pub(super) fn fail(&mut self, at_once: bool, now_ms: u64, settings: &Settings) {
        self.count(true);
        self.in_a_row += 1;
        let trial_failed = matches!(self.state, State::Open { trial: true, .. });
        let too_many = self.in_a_row >= settings.failures
            || self.calls >= CALLS_MIN && self.failure_share >= settings.failure_share;
        if trial_failed || self.state == State::Closed && (at_once || too_many) {
            let open_ms = match self.last_open_ms {
                0 => settings.open_ms,
                last => last.saturating_mul(2),
            };
            let open_ms = open_ms.min(settings.open_max_ms);
            self.last_open_ms = open_ms;
            self.state = State::Open {
                until_ms: now_ms + open_ms,
                trial: false,
            };
        }
    }

    /// The trial ended without a verdict; the next call is the trial then.
    pub(super) fn release_probe(&mut self) {
        if let State::Open { trial, .. } = &mut self.state {
            *trial = false;
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

    use super::{BreakerDecision, Breaker};
    use crate::fleet::settings::Breaker as Settings;

    fn broken() -> (Breaker, Settings) {
        let settings = Settings::default();
        let mut breaker = Breaker::new();
        for _ in 0..settings.failures {
            assert_eq!(breaker.admit(0), BreakerDecision::Allow);
            breaker.fail(false, 0, &settings);
        }
        (breaker, settings)
    }

    #[test]
    fn failures_in_a_row_open_it_and_one_trial_decides() {
        let (mut breaker, settings) = broken();
        assert_eq!(breaker.admit(settings.open_ms - 1), BreakerDecision::Reject);
        assert_eq!(breaker.admit(settings.open_ms), BreakerDecision::Probe);
        assert_eq!(
            breaker.admit(settings.open_ms),
            BreakerDecision::Reject,
            "one trial at a time"
        );
        breaker.succeed();
        assert_eq!(breaker.admit(settings.open_ms), BreakerDecision::Allow);
    }

    #[test]
    fn each_failed_trial_doubles_the_pause_up_to_a_limit() {
        let (mut breaker, settings) = broken();
        let mut pauses = Vec::new();
        let mut now = settings.open_ms;
        for _ in 0..6 {
            assert_eq!(breaker.admit(now), BreakerDecision::Probe);
            breaker.fail(false, now, &settings);
            pauses.push(breaker.ready_ms() - now);
            now = breaker.ready_ms();
        }
        assert_eq!(pauses, [20_000, 40_000, 80_000, 120_000, 120_000, 120_000]);
    }

    #[test]
    fn a_trial_without_a_verdict_leaves_the_next_one() {
        let (mut breaker, settings) = broken();
        assert_eq!(breaker.admit(settings.open_ms), BreakerDecision::Probe);
        breaker.release_probe();
        assert_eq!(breaker.admit(settings.open_ms), BreakerDecision::Probe);
    }

    #[test]
    fn a_refused_key_opens_it_at_once() {
        let mut breaker = Breaker::new();
        breaker.fail(true, 5, &Settings::default());
        assert_eq!(breaker.admit(6), BreakerDecision::Reject);
    }

    proptest! {
        /// Half of the calls fail, never enough in a row: the share opens it all the same. One in ten does not.
        #[test]
        fn a_flaky_instance_is_found_by_its_share(offset in 0usize..7) {
            let settings = Settings { failures: u32::MAX, ..Settings::default() };
            let opens = |every: usize| {
                let mut breaker = Breaker::new();
                for call in 0..400 {
                    if breaker.admit(0) != BreakerDecision::Allow {
                        return true;
                    }
                    if (call + offset) % every == 0 { breaker.fail(false, 0, &settings) } else { breaker.succeed() }
                }
                false
            };
            prop_assert!(opens(1));
            prop_assert!(opens(2));
            prop_assert!(!opens(10));
        }
    }
}
