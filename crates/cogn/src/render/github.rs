//! Output as GitHub workflow commands, one line each.

use std::io::{self, Write};

use module::diagnostic::Severity;

use super::{Checked, Renderer, Summary};

pub(super) struct Github<'a> {
    out: Box<dyn Write + 'a>,
}

impl<'a> Github<'a> {
    pub(super) fn new(out: Box<dyn Write + 'a>) -> Self {
        Self { out }
    }
}

impl Renderer for Github<'_> {
    fn begin(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn module(&mut self, checked: &Checked) -> io::Result<()> {
        for diagnostic in checked.report.iter() {
            let command = match diagnostic.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
                Severity::Note => "notice",
            };
            let place = match diagnostic.location.as_ref().filter(|at| at.line > 0) {
                Some(at) => format!(
                    ",line={},col={},endColumn={}",
                    at.line,
                    at.column,
                    at.column + at.length
                ),
                None => String::new(),
            };
            let title = format!("{} {}", diagnostic.rule.code(), diagnostic.rule.name());
            let message = match &diagnostic.hint {
                Some(hint) => format!("{}\nhelp: {hint}", diagnostic.message),
                None => diagnostic.message.clone(),
            };
            writeln!(
                self.out,
                "::{command} file={}{place},title={}::{}",
                property(&checked.file(diagnostic)),
                property(&title),
                text(&message)
            )?;
        }
        Ok(())
    }

    fn end(&mut self, _summary: Summary) -> io::Result<()> {
        self.out.flush()
    }
}

/// Escapes the text after `::`, which must not contain line breaks; the percent sign is the escape character.
fn text(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes a property, which also ends at commas and colons.
fn property(value: &str) -> String {
    text(value).replace(':', "%3A").replace(',', "%2C")
}
