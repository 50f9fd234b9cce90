//! Builds an input from command line arguments: `key=value` parsed by the type in the input schema, and media
//! put into the matching field. Validation of the complete input is left to [`crate::lower::admit_input`].

mod assign;
mod media_field;
mod media_locations;
#[cfg(test)]
mod tests;

pub use assign::{AssignError, assign};
pub use media_field::{MediaField, media_field, put_media};
pub use media_locations::{insert_media, media_locations};
