//! From a file map to a [`Module`], whatever its format. Loading never stops at the first problem: it
//! returns what could be made of the files together with everything that is wrong with them.

mod v2;

use crate::diagnostic::{Diagnostic, Report, Rule};
use crate::files::FileMap;
use crate::format::Format;
use crate::module::Module;

/// What came of a folder. `module` is absent only when nothing usable could be made of it.
#[derive(Debug, Default)]
pub struct Loaded {
    pub module: Option<Module>,
    pub report: Report,
}

pub fn load(files: &FileMap) -> Loaded {
    let mut report = Report::default();
    let module = match Format::of_files(files) {
        Some(Format::V0 | Format::V1) | None => {
            let message = "no module.yaml, MODULE.md or module.md here";
            report.push(Diagnostic::new(Rule::NOT_A_MODULE, message));
            None
        }
        Some(_) => v2::load(files, &mut report),
    };
    Loaded { module, report }
}
