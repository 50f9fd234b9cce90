//! Texts that people write: YAML, JSON and front matter, parsed within limits, and the way back from
//! a pointer into a value to a place in its text. Places are only searched for when there is something
//! to say about them.

mod front_matter;
mod json;
mod json_span;
mod pointer;
mod yaml;
mod yaml_span;

pub use front_matter::{FrontMatter, split_front_matter};
pub use json::{Duplicate, Json, JsonError, JsonErrorKind, parse_json};
pub use json_span::json_place;
pub use pointer::{dotted, join, tokens};
pub use yaml::{YamlError, YamlErrorKind, parse_yaml};
pub use yaml_span::yaml_place;

use std::ops::Range;

/// Which part of a mapping entry is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryPart {
    Key,
    Value,
}

/// Where a pointer leads in a text. When the pointer leads nowhere, this is the nearest ancestor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    pub range: Range<usize>,
    pub exact: bool,
}
