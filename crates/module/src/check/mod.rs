//! Every rule about modules, one family per file. A rule looks at the reading of a module and adds to
//! its report; it never stops another rule from being looked at.

mod asset;
mod composition;
mod context;
mod enum_pattern;
mod golden;
mod manifest;
mod media;
mod dependencies;
mod prompt;
mod schema;
mod strict;
mod violation;

pub use dependencies::{ModuleSummary, FindSummary};

use crate::diagnostic::{Diagnostic, Rule};
use crate::document::EntryPart;
use crate::file_map::FileMap;
use crate::load::{Loaded, LoadContext, refusals};

/// Which list of rules applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strict {
    /// What the module's own format asks for.
    #[default]
    Standard,
    /// Everything that v2.2 asks for, whatever the module's format.
    V22,
    /// Everything that v2.5 asks for.
    V25,
}

/// What stands around a module and can only be known by whoever found it.
#[derive(Clone, Copy, Default)]
pub struct CheckContext<'a> {
    /// The name of the module's folder.
    pub folder: Option<&'a str>,
    /// The other modules; without this, requirements are not followed.
    pub find: Option<&'a FindSummary<'a>>,
}

impl std::fmt::Debug for CheckContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Surroundings")
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

/// Loads a module by itself and says everything that is wrong with it.
pub fn check(files: &FileMap, strict: Strict) -> Loaded {
    check_with_dependencies(files, strict, CheckContext::default())
}

/// What keeps a module from being run: it cannot be read, or says something about itself that means nothing, and might be
/// held to less than was meant.
pub fn check_runnable(files: &FileMap) -> Loaded {
    let mut reading = LoadContext::of(files);
    manifest::check(&mut reading);
    reading.report.sort();
    Loaded {
        module: reading.module,
        report: reading.report,
    }
}

/// The same for a module that stands among others.
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

/// A module is found by its folder and calls itself by its name: the two should agree.
fn folder_name(reading: &mut LoadContext<'_>, folder: Option<&str>) {
    let (Some(folder), Some(module)) = (folder, &reading.module) else {
        return;
    };
    let name = module.manifest.name.as_str();
    if name.is_empty() || name == folder {
        return;
    }
    let message = format!("the module is called `{name}`, but its folder `{folder}`");
    let place = reading.in_manifest("/name", EntryPart::Value);
    let diagnostic = Diagnostic::new(Rule::NAME_MISMATCH, message).at(place);
    reading.push(diagnostic.hint(format!(
        "`cogn run {folder}` finds it by its folder: rename one of the two"
    )));
}
