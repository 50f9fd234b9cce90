//! Messages of a conversation in the dialects that keep them: the Harmony Schema, content blocks, canonical
//! documents, and the input of a module. All read into and write from [`ir::Message`].
//!
//! A message's frame (who, when, which calls, whose result) is the same everywhere; only its content
//! differs, so the frame is read and written in one place.

mod canonical;
mod cognitive;
mod content_block;
mod convert;
mod message_fields;
mod harmony;
mod outcome;
mod pairing;

pub use convert::{Conversation, DIALECTS, Form, convert, decode, encode};
pub use pairing::{PairingError, check_pairs, complete_pairs};
