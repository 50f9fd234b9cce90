//! A module of any format rewritten in a newer one. Pure: a file map goes in, a plan comes out; whoever
//! has a disk carries it out. What an author wrote stays as it stands (comments, key order, unknown
//! keys, line endings); the plan only adds, renames and moves. A module that already is what was asked
//! for gets an empty plan. What cannot be settled by a machine is named as a decision, never guessed
//! silently, and a text that cannot be edited without touching more than intended is refused.

mod contract;
mod diff;
mod draft;
mod edit;
mod example;
mod json;
mod legacy;
mod manifest;
mod media;
mod prompt;
mod section_location;
mod schema_templates;
mod text;
mod yaml;

use std::fmt;

use serde::Serialize;

use crate::file_map::FileMap;
use crate::format::Format;

pub use diff::{FileDiff, diff};
pub(crate) use json::document as json_document;
pub(crate) use prompt::envelope_section;
pub(crate) use schema_templates::{error_schema, extensions_schema, meta_schema};
pub(crate) use yaml::block as yaml_line;

use draft::Draft;

/// What a migration would do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The format found.
    pub from: Format,
    /// The format asked for.
    pub to: Format,
    /// The module's files after the migration; the same as before when there is nothing to do.
    pub files: FileMap,
    pub changes: Vec<Change>,
    pub decisions: Vec<Decision>,
}

impl Plan {
    /// Nothing would change.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// The module is already newer than what was asked for; formats are never lowered.
    pub fn is_above(&self) -> bool {
        self.from > self.to
    }

    /// Something is left that only a person can settle before the module is valid.
    pub fn needs_decision(&self) -> bool {
        self.decisions
            .iter()
            .any(|decision| decision.weight == DecisionLevel::Must)
    }
}

/// One thing that is done to one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    pub file: String,
    pub what: String,
}

/// Something for a person, with its place in the files after the migration. Line 0 means the file as a
/// whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Decision {
    pub file: String,
    pub line: usize,
    pub weight: DecisionLevel,
    pub what: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DecisionLevel {
    /// A cautious value was written; look whether it is the right one.
    Review,
    /// The module is not valid until this is settled.
    Must,
}

/// Why a module cannot be migrated at all. Nothing was planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MigrateError {
    pub file: String,
    /// Counted from 1; 0 for the file as a whole.
    pub line: usize,
    pub message: String,
    pub hint: String,
}

impl fmt::Display for MigrateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file, self.message),
            line => write!(f, "{}:{line}: {}", self.file, self.message),
        }
    }
}

impl std::error::Error for MigrateError {}

/// Plans the way of `files` to `target`, which is [`Format::V2_2`] or [`Format::V2_5`]; anything older
/// counts as v2.2, since nothing is ever written in an older format.
pub fn plan(files: &FileMap, target: Format) -> Result<Plan, MigrateError> {
    let to = target.max(Format::V2_2);
    let mut draft = Draft::open(files, to)?;
    let from = draft.from;
    if from <= to {
        manifest::migrate(&mut draft)?;
        contract::migrate(&mut draft)?;
        prompt::migrate(&mut draft)?;
        if to == Format::V2_5 {
            media::migrate(&mut draft)?;
        }
        draft.report_unmigrated();
    }
    let (files, changes, decisions) = draft.close(files)?;
    Ok(Plan {
        from,
        to,
        files,
        changes,
        decisions,
    })
}
