//! Every rule about a single module, one family per file. A rule looks at the [`Reading`] and adds to
//! its report; it never stops another rule from being looked at.

use crate::files::FileMap;
use crate::load::{Loaded, Reading, refusals};

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

/// Loads a module and says everything that is wrong with it.
pub fn check(files: &FileMap, strict: Strict) -> Loaded {
    let mut reading = Reading::of(files);
    let refused = refusals(&reading);
    reading.report.extend(refused);
    let _ = strict;
    let mut report = reading.report;
    report.sort();
    Loaded {
        module: reading.module,
        report,
    }
}
