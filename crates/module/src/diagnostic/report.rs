//! The bounded list of diagnostics.

use super::{Diagnostic, Severity};
use crate::limits;

/// Diagnostics of one module, in the order of their discovery, at most
/// [`limits::DIAGNOSTICS_MAX`] of them; the rest is only counted.
#[derive(Clone, Debug, Default)]
pub struct Report {
    diagnostics: Vec<Diagnostic>,
    dropped: usize,
    errors: usize,
    warnings: usize,
}

impl Report {
    pub fn push(&mut self, diagnostic: Diagnostic) {
        match diagnostic.severity {
            Severity::Error => self.errors += 1,
            Severity::Warning => self.warnings += 1,
            Severity::Note => {}
        }
        if self.diagnostics.len() < limits::DIAGNOSTICS_MAX {
            self.diagnostics.push(diagnostic);
        } else {
            self.dropped += 1;
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.diagnostics.iter()
    }

    pub fn is_empty(&self) -> bool {
        self.diagnostics.is_empty()
    }

    pub fn errors(&self) -> usize {
        self.errors
    }

    pub fn warnings(&self) -> usize {
        self.warnings
    }

    /// How many diagnostics were counted but not stored.
    pub fn dropped(&self) -> usize {
        self.dropped
    }

    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// Sorts by file, then by position.
    pub fn sort(&mut self) {
        self.diagnostics.sort_by(|a, b| {
            let key = |d: &Diagnostic| d.location.as_ref().map(|l| (l.file.clone(), l.line, l.column));
            key(a).cmp(&key(b))
        });
    }
}

impl Extend<Diagnostic> for Report {
    fn extend<I: IntoIterator<Item = Diagnostic>>(&mut self, diagnostics: I) {
        for diagnostic in diagnostics {
            self.push(diagnostic);
        }
    }
}
