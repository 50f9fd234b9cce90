//! Output as SARIF 2.1.0 for code scanning, with a list of all rules; results are written incrementally.

use std::io::{self, Write};

use module::diagnostic::{Diagnostic, Rule};
use serde_json::{Value, json};

use super::{Checked, Renderer, Summary};

pub(super) struct Sarif<'a> {
    out: Box<dyn Write + 'a>,
    first: bool,
}

impl<'a> Sarif<'a> {
    pub(super) fn new(out: Box<dyn Write + 'a>) -> Self {
        Self { out, first: true }
    }
}

fn rule(rule: Rule) -> Value {
    json!({
        "id": rule.code(),
        "name": rule.name(),
        "shortDescription": {"text": rule.summary()},
        "defaultConfiguration": {"level": rule.severity().as_str()},
    })
}

fn result(checked: &Checked, diagnostic: &Diagnostic) -> Value {
    let mut place = json!({"artifactLocation": {"uri": uri(&checked.file(diagnostic))}});
    if let Some(at) = diagnostic.location.as_ref().filter(|at| at.line > 0) {
        place["region"] = json!({
            "startLine": at.line,
            "startColumn": at.column,
            "endColumn": at.column + at.length,
            "snippet": {"text": at.snippet},
        });
    }
    let message = match &diagnostic.hint {
        Some(hint) => format!("{}\n{hint}", diagnostic.message),
        None => diagnostic.message.clone(),
    };
    json!({
        "ruleId": diagnostic.rule.code(),
        "ruleIndex": Rule::all().position(|rule| rule == diagnostic.rule),
        "level": diagnostic.severity.as_str(),
        "message": {"text": message},
        "locations": [{"physicalLocation": place}],
    })
}

/// A path as a relative URI reference.
fn uri(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    for byte in path.replace('\\', "/").bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(char::from(byte));
            }
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

impl Renderer for Sarif<'_> {
    fn begin(&mut self) -> io::Result<()> {
        let driver = json!({
            "name": "cogn",
            "version": env!("CARGO_PKG_VERSION"),
            "rules": Rule::all().map(rule).collect::<Vec<_>>(),
        });
        write!(
            self.out,
            "{{\"$schema\":\"https://json.schemastore.org/sarif-2.1.0.json\",\"version\":\"2.1.0\",\
             \"runs\":[{{\"tool\":{{\"driver\":{driver}}},\"columnKind\":\"unicodeCodePoints\",\"results\":["
        )
    }

    fn module(&mut self, checked: &Checked) -> io::Result<()> {
        for diagnostic in checked.report.iter() {
            write!(self.out, "{}\n  ", if self.first { "" } else { "," })?;
            self.first = false;
            write!(self.out, "{}", result(checked, diagnostic))?;
        }
        Ok(())
    }

    fn end(&mut self, _summary: Summary) -> io::Result<()> {
        writeln!(self.out, "\n]}}]}}")?;
        self.out.flush()
    }
}
