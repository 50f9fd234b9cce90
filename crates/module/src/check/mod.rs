//! All rules about modules, one family per file. A rule reads the load context of a module and adds to its
//! report; it never prevents another rule from running.

mod asset;
mod composition;
mod context;
mod dependencies;
mod enum_pattern;
mod golden;
mod manifest;
mod media;
mod prompt;
mod schema;
mod strict;
mod violation;

pub use dependencies::{FindSummary, ModuleSummary};

use crate::diagnostic::{Diagnostic, Rule};
use crate::document::EntryPart;
use crate::file_map::FileMap;
use crate::load::{LoadContext, Loaded, refusals};

/// Which list of rules applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strict {
    /// The rules of the module's own format.
    #[default]
    Standard,
    /// All rules of v2.2, for a module of any format.
    V22,
    /// All rules of v2.5.
    V25,
}

/// Information about a module that is not in its files.
#[derive(Clone, Copy, Default)]
pub struct CheckContext<'a> {
    /// The name of the module's folder.
    pub folder: Option<&'a str>,
    /// Looks up other modules; without it, requirements are not checked.
    pub find: Option<&'a FindSummary<'a>>,
}

impl std::fmt::Debug for CheckContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Surroundings")
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

/// Loads a module and reports all its problems.
pub fn check(files: &FileMap, strict: Strict) -> Loaded {
    check_with_dependencies(files, strict, CheckContext::default())
}

/// Loads a module and checks only what prevents running it: files that cannot be read, manifest values that
/// could weaken the intended limits, and schemas that cannot be used. All schemas of a run are compiled here,
/// so the caller needs a large stack and a run compiles none.
pub fn check_runnable(files: &FileMap) -> Loaded {
    let mut reading = LoadContext::of(files);
    manifest::check(&mut reading);
    schema::check_usable(&mut reading);
    reading.report.sort();
    Loaded {
        module: reading.module,
        report: reading.report,
    }
}

/// As [`check`], with the information that is not in the module's files.
pub fn check_with_dependencies(files: &FileMap, strict: Strict, surroundings: CheckContext<'_>) -> Loaded {
    let mut reading = LoadContext::of(files);
    manifest::check(&mut reading);
    folder_name(&mut reading, surroundings.folder);
    schema::check(&mut reading, strict);
    enum_pattern::check(&mut reading);
    media::check(&mut reading);
    prompt::check(&mut reading);
    golden::check(&mut reading);
    asset::check(&mut reading);
    context::check(&mut reading);
    composition::check(&mut reading);
    if let Some(find) = surroundings.find {
        dependencies::check(&mut reading, find);
    }
    strict::check(&mut reading, strict);
    let refused = refusals(&reading);
    reading.report.extend(refused);
    let mut report = reading.report;
    report.sort();
    Loaded {
        module: reading.module,
        report,
    }
}

/// A module is found by its folder and identifies itself by its name: the two should be equal.
fn folder_name(reading: &mut LoadContext<'_>, folder: Option<&str>) {
    let (Some(folder), Some(module)) = (folder, &reading.module) else {
        return;
    };
    let name = module.manifest.name.as_str();
    if name.is_empty() || name == folder {
        return;
    }
    let message = format!("the module is named `{name}`, but its folder `{folder}`");
    let place = reading.in_manifest("/name", EntryPart::Value);
    let diagnostic = Diagnostic::new(Rule::NAME_MISMATCH, message).at(place);
    reading.push(diagnostic.hint(format!(
        "`cogn run {folder}` finds it by its folder: rename one of the two"
    )));
}
