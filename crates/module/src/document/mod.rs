//! Hand-written documents: YAML, JSON and front matter, parsed within limits, and the positions of pointers
//! in their text. Positions are computed only when a diagnostic needs them.

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

/// Which part of a mapping entry is located.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryPart {
    Key,
    Value,
}

/// The position of a pointer in a text; the nearest ancestor if the pointer does not resolve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    pub range: Range<usize>,
    pub exact: bool,
}
