//! Incremental JSON: text in pieces of any size becomes events, each emitted as early as possible. The parser
//! accepts exactly the documents that `serde_json` accepts, for every split into pieces; the reply reader
//! finds the document in a model's prose.

mod error;
mod number;
mod parser;
mod reply;
#[cfg(test)]
mod tests;
mod text;

pub use error::{JsonError, JsonErrorKind};
pub use parser::JsonParser;
pub use reply::ReplyReader;

use serde_json::Number;

/// One parser event. Text is decoded and never split inside a code point or an escape.
#[derive(Clone, Debug, PartialEq)]
pub enum JsonEvent<'a> {
    ObjectStart,
    ObjectEnd,
    ArrayStart,
    ArrayEnd,
    /// The complete key of the value that follows.
    Key(&'a str),
    /// The next part of a string; none for an empty string.
    TextDelta(&'a str),
    TextEnd,
    Number(Number),
    Bool(bool),
    Null,
}
