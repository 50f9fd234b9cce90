//! The open ends of a canonical chat request: `extra` and fields with unknown names. Dialects cannot
//! know what they mean, so they are booked; a patch is the way to reach a back-end's own knobs.

use ir::{ChatRequest, Dialect, Ledger, Map, adaptation::escape};

pub(crate) fn book(chat: &ChatRequest, target: Dialect, ledger: &mut Ledger) {
    let mut drop = |pointer: String| ledger.dropped(pointer, format!("{target} has no word for it"));
    for key in chat.extra.keys() {
        drop(format!("/payload/extra/{}", escape(key)));
    }
    for key in chat.rest.keys() {
        drop(format!("/payload/{}", escape(key)));
    }
    for key in chat.generation.rest.keys() {
        drop(format!("/payload/generation/{}", escape(key)));
    }
}

/// Fields of a payload that are not named in the vocabulary.
pub(crate) fn book_rest(rest: &Map, target: Dialect, ledger: &mut Ledger) {
    for key in rest.keys() {
        ledger.dropped(
            format!("/payload/{}", escape(key)),
            format!("{target} has no word for it"),
        );
    }
}
