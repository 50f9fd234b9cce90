//! Retry budget: additional calls as a share of first calls; limits the total of retries and of hedges in a
//! fleet.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum balance, as a multiple of the initial one.
const SAVINGS: f64 = 4.0;

#[derive(Debug)]
pub(super) struct RetryBudget {
    share: f64,
    most: f64,
    left: Mutex<f64>,
}

impl RetryBudget {
    pub(super) fn new(share: f64, reserve: f64) -> Self {
        Self {
            share,
            most: reserve * SAVINGS,
            left: Mutex::new(reserve),
        }
    }

    /// Adds the share of one first call.
    pub(super) fn deposit(&self) {
        let mut left = self.left();
        *left = (*left + self.share).min(self.most);
    }

    /// Withdraws one call, if the balance permits.
    pub(super) fn try_withdraw(&self) -> bool {
        let mut left = self.left();
        let enough = *left >= 1.0;
        if enough {
            *left -= 1.0;
        }
        enough
    }

    /// Returns a call that was not made.
    pub(super) fn refund(&self) {
        *self.left() += 1.0;
    }

    fn left(&self) -> MutexGuard<'_, f64> {
        // No code panics while it holds the lock.
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::RetryBudget;

    proptest! {
        /// For any sequence of first calls and withdrawals, the additional calls stay within reserve and
        /// share.
        #[test]
        fn withdrawals_stay_within_reserve_and_share(steps in prop::collection::vec(any::<bool>(), 0..2_000), share in 0.0f64..0.5) {
            let budget = RetryBudget::new(share, 3.0);
            let (mut first, mut extra) = (0.0, 0.0);
            for wish in steps {
                if wish {
                    extra += if budget.try_withdraw() { 1.0 } else { 0.0 };
                } else {
                    budget.deposit();
                    first += 1.0;
                }
                prop_assert!(extra <= 3.0 + share * first + 1e-9);
            }
        }
    }
}
