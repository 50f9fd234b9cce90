//! Unknown fields of a canonical chat request: `extra` and names outside of the vocabulary. Dialects cannot
//! translate them, so they are recorded as losses; a patch can set fields that only one back-end supports.

use ir::{ChatRequest, Dialect, Ledger, Map, adaptation::escape};

pub(crate) fn book(chat: &ChatRequest, target: Dialect, ledger: &mut Ledger) {
    let mut drop = |pointer: String| ledger.dropped(pointer, format!("not supported by {target}"));
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

/// Records the payload fields that are not part of the vocabulary.
pub(crate) fn book_rest(rest: &Map, target: Dialect, ledger: &mut Ledger) {
    for key in rest.keys() {
        ledger.dropped(
            format!("/payload/{}", escape(key)),
            format!("not supported by {target}"),
        );
    }
}
