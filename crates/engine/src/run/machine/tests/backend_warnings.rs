//! Back-end warnings in the envelope of the answer.

use ir::event::FinishReason;
use ir::{ErrorKind, Event};
use module::stream::Chunk;

use super::attempts::in_order;
use super::reask::judged;
use super::{REPLY, Sim, plan};
use crate::run::command::RunMode;
use crate::run::machine::{MachineConfig, ReaskTarget};

fn remark(code: &str, message: &str) -> Event {
    let warning = ir::event::Warning::new(code, message);
    Event::Warning { warning }
}

/// The entries of `_warnings`, in short.
fn warned(sim: &Sim) -> Vec<String> {
    let last = sim
        .chunks
        .last()
        .cloned()
        .map(Chunk::into_value)
        .unwrap_or_default();
    let entries = last["_warnings"].as_array().cloned().unwrap_or_default();
    let short = |entry: &serde_json::Value| {
        let text = |key: &str| entry[key].as_str().unwrap_or("-").to_owned();
        format!("{} {} {}", text("code"), text("reason"), text("message"))
    };
    entries.iter().map(short).collect()
}

#[test]
fn warnings_of_the_answering_back_end_are_deduplicated() {
    for mode in [RunMode::Stream, RunMode::Sync] {
        let mut sim = Sim::with(&in_order(2), MachineConfig { mode, ..plan() });
        sim.event(sim.latest(), remark("adapted", "not of the one that answers"));
        sim.fail(ErrorKind::Upstream);
        for _ in 0..3 {
            sim.event(sim.latest(), remark("adapted", "/seed: not taken"));
        }
        sim.event(sim.latest(), remark("gpt_oss_harmony_markers", "marks"));
        sim.text(REPLY);
        sim.event(sim.latest(), remark("shortened", "cut short"));
        sim.finish(FinishReason::Stop);
        assert_eq!(
            warned(&sim),
            [
                "W4001 adapted /seed: not taken",
                "W4001 gpt_oss_harmony_markers marks",
                "W2003 - cut short"
            ],
            "{mode:?}"
        );
    }
}

#[test]
fn excess_warnings_are_counted() {
    let mut sim = Sim::with(&in_order(1), plan());
    for number in 0..1_000 {
        sim.event(
            sim.latest(),
            remark("adapted", &format!("{number} {}", "ü".repeat(2_000))),
        );
    }
    sim.text(REPLY);
    sim.finish(FinishReason::Stop);
    let warned = warned(&sim);
    assert_eq!(warned.len(), 17);
    assert!(warned.iter().all(|entry| entry.len() < 1_100));
    assert_eq!(warned[16], "W4001 - 984 more warnings from the back-end");
}

/// The fallback answer keeps its own warnings when a reask yields no answer.
#[test]
fn fallback_answer_keeps_its_warnings() {
    let mut sim = Sim::with(&in_order(1), judged(ReaskTarget::Same, 1));
    sim.event(sim.latest(), remark("adapted", "of the first answer"));
    sim.text(REPLY);
    sim.finish(FinishReason::Stop);
    sim.event(sim.latest(), remark("adapted", "of the second answer"));
    sim.fail(ErrorKind::InvalidRequest);
    assert_eq!(warned(&sim), ["W4001 adapted of the first answer"]);
}
