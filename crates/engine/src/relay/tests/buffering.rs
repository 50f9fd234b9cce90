//! What a back-end says and nobody may hear yet: it keeps the call alive, and gives nothing away.

use ir::ErrorKind;

use super::{Sim, block, continuing, is_error, started, streaming, text};
use crate::relay::machine::Input;
use crate::run::AttemptOutcome;

#[test]
fn whoever_is_not_heard_yet_is_not_silent() {
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
fn whoever_fails_before_it_is_heard_is_replaced_and_its_work_is_estimated() {
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
    assert_eq!(sim.outcomes(), [AttemptOutcome::Failed, AttemptOutcome::Won]);
    let estimate = sim.machine.records()[0].estimate.clone().unwrap();
    assert_eq!(estimate.output_tokens, Some(100));
}
