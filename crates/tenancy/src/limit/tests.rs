use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{Bucket, Enqueued, FairQueue, QueueTicket, Rate};

proptest! {
    /// In any window as long as the rate's own, at most twice the count passes (a full bucket and its
    /// refill), and over a long time never more than the rate allows.
    #[test]
    fn bucket_never_exceeds_its_rate(
        count in 1u32..50,
        unit in 0usize..3,
        steps in proptest::collection::vec(0u64..20_000, 1..400),
    ) {
        let rate: Rate = format!("{count}/{}", ["s", "m", "h"][unit]).parse().expect("a rate");
        let mut bucket = Bucket::new(rate, 0);
        let (mut now, mut passed) = (0, 0u64);
        for step in steps {
            now += step;
            match bucket.take(now) {
                Ok(()) => passed += 1,
                Err(wait_ms) => {
                    prop_assert!(wait_ms > 0);
                    // The wait time is exact to the millisecond.
                    prop_assert!(bucket.clone().take(now + wait_ms - 1).is_err());
                    prop_assert!(bucket.clone().take(now + wait_ms).is_ok());
                }
            }
            let allowed = u64::from(count) + now * u64::from(count) / u64::from(rate.per_ms);
            prop_assert!(passed <= allowed, "{passed} of {allowed} after {now} ms");
        }
    }

    #[test]
    fn clock_jumping_back_adds_no_tokens(jumps in proptest::collection::vec(0u64..10_000, 1..100)) {
        let mut bucket = Bucket::new("5/h".parse().expect("a rate"), 10_000);
        let passed = jumps.iter().filter(|at_ms| bucket.take(**at_ms).is_ok()).count();
        prop_assert!(passed <= 5);
    }

    #[test]
    fn rate_round_trips_through_display(count in 1u32.., unit in 0usize..3) {
        let text = format!("{count}/{}", ["s", "m", "h"][unit]);
        prop_assert_eq!(text.parse::<Rate>().expect("a rate").to_string(), text);
    }
}

#[test]
fn invalid_rate_is_refused() {
    for text in ["", "60", "60/d", "0/s", "-1/s", "/m", "4294967296/s"] {
        assert!(text.parse::<Rate>().is_err(), "{text}");
    }
}

#[derive(Clone, Debug)]
enum Step {
    Enter(u8),
    Leave(u8),
    Withdraw(usize),
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0u8..4).prop_map(Step::Enter),
        2 => (0u8..4).prop_map(Step::Leave),
        1 => any::<usize>().prop_map(Step::Withdraw),
    ]
}

/// The expected state of a queue: running and queued requests.
#[derive(Default)]
struct Model {
    running: BTreeMap<String, usize>,
    waiting: Vec<(String, QueueTicket, u32)>,
}

impl Model {
    fn fewest(&self) -> usize {
        let slots = |caller: &String| self.running.get(caller).copied().unwrap_or_default();
        self.waiting
            .iter()
            .map(|(caller, ..)| slots(caller))
            .min()
            .unwrap_or_default()
    }

    fn queued(&self, caller: &str) -> usize {
        self.waiting
            .iter()
            .filter(|(waiting, ..)| waiting == caller)
            .count()
    }
}

proptest! {
    #[test]
    fn free_slot_goes_to_caller_with_fewest_running(
        slots in 1usize..5,
        queue in 1usize..8,
        steps in proptest::collection::vec(any_step(), 1..200),
    ) {
        let mut fair = FairQueue::new(slots, queue);
        let mut model = Model::default();
        for (number, step) in (0u32..).zip(steps) {
            match step {
                Step::Enter(caller) => {
                    let caller = format!("c{caller}");
                    let before = model.queued(&caller);
                    match fair.enter(&caller, number) {
                        Enqueued::Admitted(item) => {
                            prop_assert_eq!(item, number);
                            prop_assert!(model.waiting.is_empty(), "others were queued");
                            *model.running.entry(caller).or_default() += 1;
                        }
                        Enqueued::Queued(ticket, evicted) => {
                            if let Some(evicted) = evicted {
                                let at = model.waiting.iter().position(|(.., item)| *item == evicted).expect("queued");
                                let (victim, ..) = model.waiting.remove(at);
                                prop_assert!(model.queued(&victim) > before, "evicted from a shorter queue");
                            }
                            model.waiting.push((caller, ticket, number));
                        }
                        Enqueued::Rejected(_) => {
                            prop_assert_eq!(fair.waiting(), queue);
                            let longest = (0..4).map(|other| model.queued(&format!("c{other}"))).max();
                            prop_assert!(longest.unwrap_or_default() <= before + 1, "longer queue not evicted");
                        }
                    }
                }
                Step::Leave(caller) => {
                    let caller = format!("c{caller}");
                    if model.running.get(&caller).copied().unwrap_or_default() == 0 {
                        continue;
                    }
                    *model.running.entry(caller.clone()).or_default() -= 1;
                    match fair.leave(&caller) {
                        None => prop_assert!(model.waiting.is_empty(), "slot left unused"),
                        Some((next, item)) => {
                            let has = model.running.get(&next).copied().unwrap_or_default();
                            prop_assert_eq!(has, model.fewest());
                            let first = model.waiting.iter().position(|(waiting, ..)| *waiting == next).expect("queued");
                            prop_assert_eq!(model.waiting[first].2, item, "queue is FIFO per caller");
                            model.waiting.remove(first);
                            *model.running.entry(next).or_default() += 1;
                        }
                    }
                }
                Step::Withdraw(at) => {
                    if model.waiting.is_empty() {
                        continue;
                    }
                    let (caller, ticket, item) = model.waiting.remove(at % model.waiting.len());
                    prop_assert_eq!(fair.withdraw(&caller, ticket), Some(item));
                    prop_assert_eq!(fair.withdraw(&caller, ticket), None);
                }
            }
            let running: usize = model.running.values().sum();
            prop_assert!(running <= slots);
            prop_assert_eq!((fair.running(), fair.waiting()), (running, model.waiting.len()));
            prop_assert!(fair.waiting() <= queue);
        }
    }

    /// However many requests a greedy caller has queued, the next free slot goes to the other caller.
    #[test]
    fn greedy_caller_does_not_starve_others(slots in 1usize..20, pile in 1usize..200, queue in 2usize..50) {
        let mut fair = FairQueue::new(slots, queue);
        for number in 0..slots + pile {
            fair.enter("greedy", number);
        }
        let modest = fair.enter("modest", usize::MAX);
        let waits = matches!(modest, Enqueued::Queued(..));
        prop_assert!(waits, "{modest:?}");
        fair.enter("greedy", 0);
        prop_assert_eq!(fair.leave("greedy"), Some((String::from("modest"), usize::MAX)));
    }
}
