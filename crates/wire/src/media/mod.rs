//! Media in the four forms in which documents carry it: the specification's `MediaInput` and `MediaOutput`,
//! the canonical `MediaRef`, the content block of conversations, the part of the Harmony Schema. Each form
//! decodes into and encodes from one [`ir::Media`].
//!
//! A conversion back to the original form is lossless. A conversion to another form carries every field,
//! records it as a loss with its pointer, or fails and names the required action.

mod cognitive;
mod content_block;
mod content_rules;
mod context;
mod convert;
mod error;
mod harmony;
mod hints;
mod media_ref;
mod presigned;
mod sidecar;

pub use context::{ConversionContext, Locality};
pub use convert::{DIALECTS, convert, decode, encode};
pub use error::{ConversionError, RequiredAction};
pub use presigned::{is_presigned, may_persist};

pub(crate) use content_block::decode as decode_block;
pub(crate) use content_rules::check_keys;
pub(crate) use convert::{encode_at, normalise};
pub(crate) use harmony::decode as decode_part;
