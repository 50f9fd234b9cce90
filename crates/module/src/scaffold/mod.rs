//! Templates for a new module, which passes the strict checks of its format and has a golden test. Pure: the
//! input is a blueprint, the result is a file map. The comments in the manifest are the only documentation
//! that is generated.

mod golden;
mod manifest;
mod name;
mod output_field;
mod prompt;
mod schema;

use crate::file_map::{Entry, FileMap};
use crate::format::Format;
use crate::manifest::{Modality, Tier};

pub use name::{NameError, check_name, derive_name};
pub use output_field::{FieldError, OutputField, check_all};

/// Parameters of a new module.
#[derive(Clone, Debug, PartialEq)]
pub struct Blueprint {
    pub name: String,
    /// The name for people, in any script.
    pub title: Option<String>,
    /// One sentence, at most [`RESPONSIBILITY_CHARS_MAX`] characters.
    pub responsibility: String,
    pub tier: Tier,
    /// [`Format::V2_2`] or [`Format::V2_5`]; with media it is always v2.5.
    pub format: Format,
    /// Accepted inputs besides text.
    pub input: Vec<Modality>,
    /// The fields of the answer besides the rationale; without any it is a text.
    pub output: Vec<OutputField>,
}

/// Longest responsibility that the format allows.
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

/// The input field for a kind of media.
fn field(kind: Modality) -> &'static str {
    match kind {
        Modality::Text => "text",
        Modality::Image => "images",
        Modality::Audio => "audio",
        Modality::Video => "video",
        Modality::Document => "document",
    }
}
