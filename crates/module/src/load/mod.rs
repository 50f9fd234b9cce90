//! Loads a [`Module`] of any format from a file map. Loading does not stop at the first problem: it returns
//! the module as far as possible together with all diagnostics of reading. The contents are checked by
//! [`mod@crate::check`].

mod assets;
mod context;
mod contract;
mod examples;
mod load_context;
mod text;
mod v0;
mod v1;
mod v2;

pub(crate) use contract::percent_decoded;
pub use examples::unlisted_tests;
pub(crate) use examples::{is_test_path, split_expected, split_input};
pub(crate) use load_context::{LoadContext, ManifestText};
pub(crate) use text::refusals;

use crate::diagnostic::Report;
use crate::file_map::FileMap;
use crate::module::Module;

/// The result of loading a folder. `module` is `None` only if nothing usable was read.
#[derive(Debug, Default)]
pub struct Loaded {
    pub module: Option<Module>,
    pub report: Report,
}

pub fn load(files: &FileMap) -> Loaded {
    let reading = LoadContext::of(files);
    let mut report = reading.report;
    report.sort();
    Loaded {
        module: reading.module,
        report,
    }
}
