//! Output as one JSON document, written module by module.

use std::io::{self, Write};

use module::diagnostic::Diagnostic;
use serde::Serialize;

use super::{Checked, Renderer, Summary};

pub(super) struct Json<'a> {
    out: Box<dyn Write + 'a>,
    first: bool,
}

impl<'a> Json<'a> {
    pub(super) fn new(out: Box<dyn Write + 'a>) -> Self {
        Self { out, first: true }
    }
}

#[derive(Serialize)]
struct DiagnosticEntry<'a> {
    name: &'a str,
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<&'static str>,
    ok: bool,
    diagnostics: Vec<ModuleSummary<'a>>,
    #[serde(skip_serializing_if = "is_zero")]
    dropped: usize,
}

#[derive(Serialize)]
struct ModuleSummary<'a> {
    code: &'static str,
    name: &'static str,
    severity: &'static str,
    message: &'a str,
    file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_column: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    snippet: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

fn row<'a>(checked: &Checked, diagnostic: &'a Diagnostic) -> ModuleSummary<'a> {
    let at = diagnostic.location.as_ref().filter(|at| at.line > 0);
    ModuleSummary {
        code: diagnostic.rule.code(),
        name: diagnostic.rule.name(),
        severity: diagnostic.severity.as_str(),
        message: &diagnostic.message,
        file: checked.file(diagnostic),
        line: at.map(|at| at.line),
        column: at.map(|at| at.column),
        end_column: at.map(|at| at.column + at.length),
        snippet: at.map(|at| at.snippet.as_str()),
        hint: diagnostic.hint.as_deref(),
    }
}

impl Renderer for Json<'_> {
    fn begin(&mut self) -> io::Result<()> {
        write!(self.out, "{{\"version\":1,\"modules\":[")
    }

    fn module(&mut self, checked: &Checked) -> io::Result<()> {
        let entry = DiagnosticEntry {
            name: &checked.name,
            path: checked.path.display().to_string(),
            format: checked.format.map(module::Format::as_str),
            ok: !checked.report.has_errors(),
            diagnostics: checked
                .report
                .iter()
                .map(|diagnostic| row(checked, diagnostic))
                .collect(),
            dropped: checked.report.dropped(),
        };
        write!(self.out, "{}\n  ", if self.first { "" } else { "," })?;
        self.first = false;
        serde_json::to_writer(&mut self.out, &entry).map_err(io::Error::other)
    }

    fn end(&mut self, summary: Summary) -> io::Result<()> {
        writeln!(
            self.out,
            "\n],\"summary\":{{\"modules\":{},\"errors\":{},\"warnings\":{},\"hidden\":{}}}}}",
            summary.modules, summary.errors, summary.warnings, summary.hidden
        )?;
        self.out.flush()
    }
}
