//! A new module, ready to be filled: it passes the strict list of its format from the first moment and
//! has a golden test. Pure: a blueprint goes in, files come out. The comments in its manifest are the
//! lesson a newcomer needs; nothing else is written.

mod golden;
mod manifest;
mod name;
mod prompt;
mod schema;

use crate::file_map::{Entry, FileMap};
use crate::format::Format;
use crate::manifest::{Modality, Tier};

pub use name::{NameError, check_name};

/// What a new module is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blueprint {
    pub name: String,
    /// One sentence, at most [`RESPONSIBILITY_CHARS_MAX`] characters.
    pub responsibility: String,
    pub tier: Tier,
    /// [`Format::V2_2`] or [`Format::V2_5`]; media make it v2.5 in any case.
    pub format: Format,
    /// What goes in besides text.
    pub input: Vec<Modality>,
}

/// Longest responsibility, as the format has it.
pub const RESPONSIBILITY_CHARS_MAX: usize = 200;

impl Blueprint {
    /// Kinds of media other than text, each once, in a fixed order.
    fn media(&self) -> Vec<Modality> {
        let kinds = [
            Modality::Image,
            Modality::Audio,
            Modality::Video,
            Modality::Document,
        ];
        kinds
            .into_iter()
            .filter(|kind| self.input.contains(kind))
            .collect()
    }

    fn is_v25(&self) -> bool {
        self.format >= Format::V2_5 || !self.media().is_empty()
    }

    fn format(&self) -> Format {
        if self.is_v25() { Format::V2_5 } else { Format::V2_2 }
    }
}

/// The files of a new module.
pub fn write(blueprint: &Blueprint) -> FileMap {
    let mut files = FileMap::new();
    let mut add = |path: &str, text: String| files.insert(path, Entry::Read(text.into_bytes()));
    add("module.yaml", manifest::write(blueprint));
    add("prompt.md", prompt::write(blueprint));
    add("schema.json", schema::write(blueprint));
    add("tests/example.input.json", golden::input(blueprint));
    add("tests/example.expected.json", golden::expected(blueprint));
    files
}

/// The field of the input in which a kind of media arrives.
fn field(kind: Modality) -> &'static str {
    match kind {
        Modality::Text => "text",
        Modality::Image => "images",
        Modality::Audio => "audio",
        Modality::Video => "video",
        Modality::Document => "document",
    }
}
