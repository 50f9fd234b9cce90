//! A stream that breaks off, wherever that is: the caller has the whole, or exactly one error.

use ir::Event;
use proptest::prelude::*;

use super::{Sim, WHOLE, block, continuing, count, is_error, is_finish, rest_of, started, streaming, text};
use crate::run::AttemptOutcome;

/// Where an attempt breaks off: behind so many characters of what it had to say.
fn cuts() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0..WHOLE.chars().count() + 1, 1..5)
}

/// Says as much as it gets to, in pieces of this size.
fn speak(sim: &mut Sim, index: u32, size: usize, most: Option<usize>, verbatim: bool) {
    let rest = rest_of(&sim.open.last().unwrap().2);
    let rest: Vec<char> = rest.chars().take(most.unwrap_or(usize::MAX)).collect();
    let tell = |sim: &mut Sim, event| match verbatim {
        true => sim.piece(event),
        false => sim.say(event),
    };
    tell(sim, started());
    tell(sim, block(index));
    for piece in rest.chunks(size) {
        let piece: String = piece.iter().collect();
        tell(sim, Event::text(index, piece));
    }
}

proptest! {
    /// Wherever they break off, however often: who continues makes it whole, and the caller sees one answer.
    #[test]
    fn wherever_it_is_cut_the_caller_has_the_whole(
        cuts in cuts(), size in 1usize..5, verbatim in any::<bool>(), ended in any::<bool>(),
    ) {
        let mut sim = Sim::new(&continuing(cuts.len() + 1, 1), streaming());
        for (number, cut) in cuts.iter().enumerate() {
            let index = u32::try_from(number % 3).unwrap();
            let first = number == 0;
            speak(&mut sim, index, size, Some(*cut), verbatim && first);
            if ended && first {
                let end = Event::BlockEnd { index };
                if verbatim { sim.piece(end) } else { sim.say(end) }
            }
            sim.cut();
            prop_assert_eq!(sim.opened.len(), number + 2);
        }
        speak(&mut sim, 1, size, None, false);
        sim.finish();
        let events = sim.events();
        prop_assert_eq!(text(&events), WHOLE);
        prop_assert_eq!(count(&events, is_finish), 1);
        prop_assert_eq!(count(&events, is_error), 0);
        prop_assert_eq!(events.iter().filter(|event| matches!(event, Event::Started { .. })).count(), 1);
        prop_assert_eq!(sim.machine.failure(), None);
        let mut expected = vec![AttemptOutcome::Failed; cuts.len()];
        expected.push(AttemptOutcome::Won);
        prop_assert_eq!(sim.outcomes(), expected);
    }

    /// Without anyone who continues: what there is, exactly one error, and never a good end.
    #[test]
    fn wherever_it_is_cut_for_good_there_is_one_error(
        cut in 1..WHOLE.chars().count(), size in 1usize..5, verbatim in any::<bool>(),
    ) {
        let mut sim = Sim::new(&continuing(3, 9), streaming());
        speak(&mut sim, 0, size, Some(cut), verbatim);
        sim.cut();
        let events = sim.events();
        let said: String = WHOLE.chars().take(cut).collect();
        prop_assert_eq!(text(&events), said);
        prop_assert_eq!(count(&events, is_error), 1);
        prop_assert!(is_error(events.last().unwrap()));
        prop_assert_eq!(count(&events, is_finish), 0);
        prop_assert!(sim.machine.failure().is_some());
        prop_assert!(sim.open.is_empty());
    }
}
