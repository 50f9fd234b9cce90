//! Inputs put together word by word, the way a command line gives them: `key=value` read as the input
//! schema means it, and the field that a picture, a sound or a document belongs into. Nothing is checked
//! here that [`crate::lower::admit_input`] checks.

mod assign;
mod media_field;
mod media_locations;
#[cfg(test)]
mod tests;

pub use assign::{AssignError, assign};
pub use media_field::{MediaField, media_field, put_media};
pub use media_locations::{media_locations, insert_media};
