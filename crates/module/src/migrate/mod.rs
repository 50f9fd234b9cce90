//! Migration of a module to a newer format. Pure: the input is a file map, the result is a plan; the caller
//! writes the files. The author's text is preserved (comments, key order, unknown keys, line endings); the
//! plan only adds, renames and moves. A module that already has the requested format gets an empty plan.
//! What cannot be derived is reported as a decision for the author, and a text that cannot be edited without
//! unintended changes is refused.

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
mod schema_templates;
mod section_location;
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
    /// The requested format.
    pub to: Format,
    /// The module's files after the migration; unchanged if the plan is empty.
    pub files: FileMap,
    pub changes: Vec<Change>,
    pub decisions: Vec<Decision>,
}

impl Plan {
    /// Nothing would change.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// The module is newer than the requested format; formats are never downgraded.
    pub fn is_above(&self) -> bool {
        self.from > self.to
    }

    /// A decision of the author is required before the module is valid.
    pub fn needs_decision(&self) -> bool {
        self.decisions
            .iter()
            .any(|decision| decision.weight == DecisionLevel::Must)
    }
}

/// One change of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    pub file: String,
    pub what: String,
}

/// A decision for the author, with its position in the files after the migration. Line 0 means the whole
/// file.
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
    /// A conservative value was written; the author should review it.
    Review,
    /// The module is not valid until the author decides.
    Must,
}

/// Why a module cannot be migrated. There is no plan.
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

/// Plans the migration of `files` to `target`, which is [`Format::V2_2`] or [`Format::V2_5`]; anything older
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
