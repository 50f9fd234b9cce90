//! The measuring loop of every ratio: what is measured and its baseline run in turn until a budget is spent,
//! and both medians go out as a JSON line for `cargo x bench`. Bench targets include this file by its path,
//! so that measuring costs no crate a dependency. Run as a test, each pair runs only a few times.

use std::time::{Duration, Instant};

/// How long one figure may take; almost none unless a measurement is requested.
fn budget() -> Duration {
    let measuring = std::env::args().any(|argument| argument == "--bench");
    if measuring {
        Duration::from_millis(1500)
    } else {
        Duration::ZERO
    }
}

/// Prints `measured / baseline`, which is to be at most `limit`.
#[expect(clippy::print_stdout, reason = "the figures are the result of this program")]
pub(crate) fn figure(name: &str, against: &str, limit: f64, measured: impl Fn(), baseline: impl Fn()) {
    let budget = budget();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let begun = Instant::now();
    while ours.len() < 5 || begun.elapsed() < budget {
        ours.push(time_us(&measured));
        theirs.push(time_us(&baseline));
    }
    let line = serde_json::json!({
        "name": name,
        "measured_us": median(&mut ours),
        "baseline_us": median(&mut theirs),
        "against": against,
        "limit": limit,
    });
    println!("{line}");
}

fn time_us(work: &impl Fn()) -> f64 {
    let begun = Instant::now();
    work();
    begun.elapsed().as_secs_f64() * 1e6
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
