//! JSON as it grows: text in pieces of any size becomes events, each as early as it can be known. The
//! parser takes exactly what `serde_json` takes, whatever the pieces; the reply reader around it finds
//! the document in a model's prose.

mod error;
mod number;
mod parser;
mod reply;
mod text;

pub use error::{JsonError, JsonErrorKind};
pub use parser::JsonParser;
pub use reply::ReplyReader;

use serde_json::Number;

/// One step through a document. Text is decoded, and never cut inside a code point or an escape.
#[derive(Clone, Debug, PartialEq)]
pub enum JsonEvent<'a> {
    ObjectStart,
    ObjectEnd,
    ArrayStart,
    ArrayEnd,
    /// The whole key of the value that follows.
    Key(&'a str),
    /// The next part of a string; an empty string has none.
    TextDelta(&'a str),
    TextEnd,
    Number(Number),
    Bool(bool),
    Null,
}
