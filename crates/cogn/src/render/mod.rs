//! Output formats of diagnostics: text, JSON, GitHub annotations and SARIF. A renderer gets one module after
//! the other and stores none, so that memory does not grow with the number of modules.

mod github;
mod human;
mod json;
mod sarif;

use std::io;
use std::path::PathBuf;

use clap::ValueEnum;
use module::Format;
use module::diagnostic::{Diagnostic, Report};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Style {
    /// Text with the affected source lines.
    Human,
    /// One JSON document.
    Json,
    /// Workflow commands that GitHub shows as annotations of a change.
    Github,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
}

/// A checked module.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) name: String,
    /// Its folder as given by the user or the search path.
    pub(crate) path: PathBuf,
    pub(crate) format: Option<Format>,
    pub(crate) report: Report,
}

impl Checked {
    /// The file of a diagnostic; the folder if the diagnostic applies to the whole module.
    fn file(&self, diagnostic: &Diagnostic) -> String {
        let path = match &diagnostic.location {
            Some(location) => self.path.join(&location.file),
            None => self.path.clone(),
        };
        path.strip_prefix(".").unwrap_or(&path).display().to_string()
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Summary {
    pub(crate) modules: usize,
    pub(crate) errors: usize,
    pub(crate) warnings: usize,
    /// Modules that are hidden by another one with the same name; they were not checked.
    pub(crate) hidden: usize,
}

impl Summary {
    pub(crate) fn add(&mut self, checked: &Checked) {
        self.modules += 1;
        self.errors += checked.report.errors();
        self.warnings += checked.report.warnings();
    }
}

/// Writes modules in the given order.
pub(crate) trait Renderer {
    fn begin(&mut self) -> io::Result<()>;
    fn module(&mut self, checked: &Checked) -> io::Result<()>;
    fn end(&mut self, summary: Summary) -> io::Result<()>;
}

pub(crate) fn renderer<'a>(
    style: Style,
    quiet: bool,
    out: Box<dyn io::Write + 'a>,
) -> Box<dyn Renderer + 'a> {
    match style {
        Style::Human => Box::new(human::Human::new(quiet, out)),
        Style::Json => Box::new(json::Json::new(out)),
        Style::Github => Box::new(github::Github::new(out)),
        Style::Sarif => Box::new(sarif::Sarif::new(out)),
    }
}
