//! Truncated streams: at any byte, the caller gets the complete text or exactly one error.

use ir::Event;
use proptest::prelude::*;

use super::{Sim, WHOLE, block, continuing, count, is_error, is_finish, rest_of, started, streaming, text};
use crate::run::AttemptOutcome;

/// Numbers of characters after which the attempts are truncated.
fn cuts() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0..WHOLE.chars().count() + 1, 1..5)
}

/// Sends up to `most` characters in pieces of this size.
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
    /// Truncated anywhere, any number of times: continuations complete the text, and the caller gets one
    /// answer.
    #[test]
    fn truncated_streams_are_continued_to_the_complete_text(
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
        expected.push(AttemptOutcome::Succeeded);
        prop_assert_eq!(sim.outcomes(), expected);
    }

    /// Without a back-end that continues: the text so far, exactly one error, and no finish event.
    #[test]
    fn truncation_without_continuation_emits_one_error(
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
