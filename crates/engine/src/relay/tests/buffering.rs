//! Buffered output of a back-end: it keeps the call alive and is not emitted.

use ir::ErrorKind;

use super::{Sim, block, continuing, is_error, started, streaming, text};
use crate::relay::machine::Input;
use crate::run::AttemptOutcome;

#[test]
fn buffered_output_resets_the_idle_timeout() {
    let mut sim = Sim::new(&continuing(2, 1), streaming());
    sim.say(started());
    let attempt = sim.latest();
    for bytes in 1..13 {
        sim.pass(20_000);
        assert_eq!(sim.opened.len(), 1, "{bytes}");
        sim.step(Input::Buffered { attempt, bytes });
    }
    assert!(sim.parts.is_empty());
}

#[test]
fn fails_over_while_buffering_and_estimates_usage() {
    let mut sim = Sim::new(&continuing(2, 1), streaming());
    sim.say(started());
    let attempt = sim.latest();
    sim.step(Input::Buffered { attempt, bytes: 400 });
    sim.fail(ErrorKind::Network);
    sim.say(started());
    sim.say(block(0));
    sim.say(ir::Event::text(0, "whole"));
    sim.finish();
    let events = sim.events();
    assert_eq!(text(&events), "whole");
    assert!(!events.iter().any(is_error));
    assert_eq!(
        sim.outcomes(),
        [AttemptOutcome::Failed, AttemptOutcome::Succeeded]
    );
    let estimate = sim.machine.records()[0].estimate.clone().unwrap();
    assert_eq!(estimate.output_tokens, Some(100));
}
