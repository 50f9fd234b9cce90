//! Text output in the style of rustc, with source line, message and hint. Colour codes are always written;
//! the output stream removes them if it is not a terminal.

use std::io::{self, Write};
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer as Painter, Snippet};
use module::diagnostic::{Diagnostic, Location, Severity};
use owo_colors::OwoColorize;

use super::{Checked, Renderer, Summary};

pub(super) struct Human<'a> {
    quiet: bool,
    painter: Painter,
    out: Box<dyn Write + 'a>,
}

impl<'a> Human<'a> {
    pub(super) fn new(quiet: bool, out: Box<dyn Write + 'a>) -> Self {
        Self {
            quiet,
            painter: Painter::styled(),
            out,
        }
    }

    fn diagnostic(&mut self, file: &str, diagnostic: &Diagnostic) -> io::Result<()> {
        let level = match diagnostic.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
            Severity::Note => Level::NOTE,
        };
        let title = level
            .primary_title(diagnostic.message.as_str())
            .id(diagnostic.rule.code());
        let mut group = match diagnostic
            .location
            .as_ref()
            .and_then(|at| Some((at, marked(at)?)))
        {
            Some((at, span)) => title.element(
                Snippet::source(at.snippet.as_str())
                    .path(file)
                    .line_start(at.line)
                    .annotation(AnnotationKind::Primary.span(span)),
            ),
            None => title.element(origin(file, diagnostic.location.as_ref())),
        };
        if let Some(hint) = &diagnostic.hint {
            group = group.element(Level::HELP.message(hint.as_str()));
        }
        let groups: [Group<'_>; 1] = [group];
        writeln!(self.out, "{}\n", self.painter.render(&groups))
    }
}

/// The bytes of the snippet to underline; `None` for a whole file, or beyond the end of a truncated line.
fn marked(at: &Location) -> Option<Range<usize>> {
    if at.line == 0 {
        return None;
    }
    let mut borders = at
        .snippet
        .char_indices()
        .map(|(byte, _)| byte)
        .chain([at.snippet.len()]);
    let start = borders.nth(at.column.checked_sub(1)?)?;
    let end = borders.nth(at.length.checked_sub(1)?).unwrap_or(at.snippet.len());
    Some(start..end)
}

fn origin<'a>(file: &'a str, at: Option<&Location>) -> Origin<'a> {
    match at {
        Some(at) if at.line > 0 => Origin::path(file).line(at.line).char_column(at.column),
        _ => Origin::path(file),
    }
}

impl Renderer for Human<'_> {
    fn begin(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn module(&mut self, checked: &Checked) -> io::Result<()> {
        for diagnostic in checked.report.iter() {
            if !(self.quiet && diagnostic.severity == Severity::Note) {
                self.diagnostic(&checked.file(diagnostic), diagnostic)?;
            }
        }
        match checked.report.dropped() {
            0 => Ok(()),
            dropped => writeln!(self.out, "... and {dropped} more in {}\n", checked.name),
        }
    }

    fn end(&mut self, summary: Summary) -> io::Result<()> {
        if self.quiet {
            return self.out.flush();
        }
        let count = |count: usize, word: &str| match count {
            0 => format!("no {word}s"),
            1 => format!("1 {word}"),
            count => format!("{count} {word}s"),
        };
        let text = format!(
            "{}: {}, {}",
            count(summary.modules, "module"),
            count(summary.errors, "error"),
            count(summary.warnings, "warning")
        );
        let hidden = match summary.hidden {
            0 => String::new(),
            hidden => format!(" ({} not checked)", count(hidden, "hidden module")),
        };
        if summary.errors > 0 {
            writeln!(self.out, "{}{hidden}", text.red().bold())?;
        } else {
            writeln!(self.out, "{}{hidden}", text.green().bold())?;
        }
        self.out.flush()
    }
}
