//! Distribution of the time to the first token over the latest answers of an instance. Buckets grow by 3 %,
//! which bounds the error of a quantile; two generations alternate, so that old answers expire.

/// Width of a bucket relative to the one before.
const GROWTH: f64 = 1.03;
/// From one millisecond to about ten minutes.
const BUCKETS: usize = 450;
/// Answers in one generation.
const GENERATION: u32 = 4_096;
/// Fewer answers than this do not give a meaningful quantile.
const ANSWERS_MIN: u32 = 200;

#[derive(Clone, Debug, Default)]
pub(super) struct Histogram {
    /// Empty until the first answer.
    young: Vec<u32>,
    old: Vec<u32>,
    count: u32,
    old_count: u32,
}

impl Histogram {
    pub(super) fn record(&mut self, ms: f64) {
        if self.young.is_empty() {
            self.young = vec![0; BUCKETS];
        }
        if self.count == GENERATION {
            self.old = std::mem::replace(&mut self.young, vec![0; BUCKETS]);
            self.old_count = self.count;
            self.count = 0;
        }
        self.young[bucket(ms)] += 1;
        self.count += 1;
    }

    /// The time within which this share of the answers started; `None` with too few answers.
    pub(super) fn quantile(&self, share: f64) -> Option<f64> {
        let total = self.count + self.old_count;
        if total < ANSWERS_MIN {
            return None;
        }
        let wanted = f64::from(total) * share;
        let mut seen = 0.0;
        for at in 0..BUCKETS {
            let here = self.young.get(at).copied().unwrap_or(0) + self.old.get(at).copied().unwrap_or(0);
            let here = f64::from(here);
            if here > 0.0 && seen + here >= wanted {
                let within = ((wanted - seen) / here).clamp(0.0, 1.0);
                return Some(GROWTH.powf(at as f64 + within));
            }
            seen += here;
        }
        None
    }
}

fn bucket(ms: f64) -> usize {
    let at = ms.max(1.0).ln() / GROWTH.ln();
    (at as usize).min(BUCKETS - 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{GENERATION, Histogram};

    proptest! {
        #[test]
        fn quantile_is_within_the_bucket_error(samples in prop::collection::vec(1.0f64..100_000.0, 200..800), share in 0.5f64..0.99) {
            let mut histogram = Histogram::default();
            samples.iter().for_each(|ms| histogram.record(*ms));
            let mut sorted = samples;
            sorted.sort_by(f64::total_cmp);
            let rank = (sorted.len() as f64 * share).ceil() as usize;
            let exact = sorted[rank.clamp(1, sorted.len()) - 1];
            let found = histogram.quantile(share).expect("enough is known");
            prop_assert!(found <= exact * 1.031 && found >= exact / 1.031, "{found} for {exact}");
        }
    }

    #[test]
    fn few_samples_give_no_quantile_and_old_ones_expire() {
        let mut histogram = Histogram::default();
        for _ in 0..199 {
            histogram.record(1_000.0);
        }
        assert_eq!(histogram.quantile(0.5), None);
        for _ in 0..3 * GENERATION {
            histogram.record(10.0);
        }
        assert!(histogram.quantile(1.0).is_some_and(|ms| ms < 11.0));
    }
}
