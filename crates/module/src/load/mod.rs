//! From a file map to a [`Module`], whatever its format. Loading never stops at the first problem: it
//! returns what could be made of the files together with everything that keeps them from being read.
//! Whether the module is any good is the business of [`mod@crate::check`].

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
pub(crate) use examples::{is_test_path, split_expected, split_input};
pub(crate) use load_context::{ManifestText, LoadContext};
pub(crate) use text::refusals;

use crate::diagnostic::Report;
use crate::file_map::FileMap;
use crate::module::Module;

/// What came of a folder. `module` is absent only when nothing usable could be made of it.
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
