//! Messages of a conversation in the dialects with standalone messages: the Harmony Schema, content blocks,
//! canonical documents, and the input of a module. All decode into and encode from [`ir::Message`].
//!
//! The message fields (role, time, calls, call id of a result) are the same in all of them; only the content
//! differs, so the fields are decoded and encoded in one place.

mod canonical;
mod cognitive;
mod content_block;
mod convert;
mod harmony;
mod message_fields;
mod outcome;
mod pairing;

pub use convert::{Conversation, DIALECTS, Form, convert, decode, encode};
pub use pairing::{PairingError, check_pairs, complete_pairs};
