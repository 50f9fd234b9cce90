//! Media in the four forms in which documents carry it: the specification's `MediaInput` and `MediaOutput`,
//! the canonical `MediaRef`, the content block of conversations, the part of the Harmony Schema. Each form
//! reads into and writes from one [`ir::Media`].
//!
//! What goes back to the form it came from comes out as it went in. Towards another form nothing vanishes
//! silently: it is carried, or booked with its place, or the conversion is refused and says what it needs.

mod cognitive;
mod content_block;
mod convert;
mod harmony;
mod hints;
mod content_rules;
mod media_ref;
mod presigned;
mod error;
mod context;
mod sidecar;

pub use convert::{DIALECTS, convert, decode, encode};
pub use presigned::{is_presigned, may_persist};
pub use error::{RequiredAction, ConversionError};
pub use context::{Locality, ConversionContext};

pub(crate) use content_block::decode as decode_block;
pub(crate) use convert::{encode_at, normalise};
pub(crate) use harmony::decode as decode_part;
pub(crate) use content_rules::check_keys;
