//! Builds an input from command line arguments: `key=value` parsed by the type in the input schema, media put
//! into the matching field, and free text. Also which fields of an input a module uses. Validation of the
//! complete input is left to [`crate::lower::admit_input`].

mod assign;
mod field_use;
mod free_text;
mod media_field;
mod media_locations;
#[cfg(test)]
mod tests;

pub use assign::{AssignError, assign};
pub(crate) use field_use::FieldUse;
pub use free_text::{FREE_TEXT_KEY, free_text};
pub(crate) use free_text::{input_view, place_free_text};
pub use media_field::{MediaField, media_field, put_media};
pub use media_locations::{insert_media, media_locations};
