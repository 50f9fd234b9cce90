//! Text output of envelopes and of streamed fields.

use std::io::{self, Write};

use owo_colors::OwoColorize;
use serde_json::Value;

use crate::output::Output;

/// Prints the verdict, the data, and last what the reader must not miss.
pub(crate) fn print_envelope(output: &Output, envelope: &Value) -> io::Result<()> {
    print_verdict(output, envelope)?;
    print_data(
        output,
        envelope.get("data").or_else(|| envelope.get("partial_data")),
    )?;
    print_notes(output, envelope)
}

/// Prints the details of the verdict, reasons for a review, and which back-end has answered.
pub(crate) fn print_notes(output: &Output, envelope: &Value) -> io::Result<()> {
    print_findings(output, envelope)?;
    for reason in list(envelope, "/_review/reasons").filter_map(Value::as_str) {
        output.line(format!("{} {reason}", "review needed:".yellow().bold()))?;
    }
    let model = envelope.pointer("/meta/model").and_then(Value::as_str);
    match model {
        Some(model) => output.line(format!("{} {model}", "answered by".dimmed())),
        None => Ok(()),
    }
}

/// Prints whether the contract is met, in one or two lines.
pub(crate) fn print_verdict(output: &Output, envelope: &Value) -> io::Result<()> {
    let text = |pointer: &str| {
        envelope
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let number = envelope
        .pointer("/meta/confidence")
        .map(Value::to_string)
        .unwrap_or_default();
    let about = format!("confidence {number}, risk {}", text("/meta/risk"));
    let ok = envelope.get("ok") == Some(&Value::Bool(true));
    if ok {
        let explain = text("/meta/explain");
        let confidence = envelope.pointer("/meta/confidence").and_then(Value::as_f64);
        // The form is right, but the model vouches for nothing.
        if confidence.is_none_or(|confidence| confidence <= 0.0) {
            return output.line(format!("{} {explain} ({about})", "no confidence".yellow().bold()));
        }
        return output.line(format!("{} {explain} ({about})", "ok".green().bold()));
    }
    let verdict = format!("{} {}", text("/error/code"), text("/error/message"));
    output.line(format!("{} {verdict} ({about})", "failed".red().bold()))?;
    if !text("/error/suggestion").is_empty() {
        output.line(format!("{} {}", "hint:".cyan().bold(), text("/error/suggestion")))?;
    }
    Ok(())
}

/// Prints the details of the verdict: problems with their location, repairs, warnings, and stream violations.
pub(crate) fn print_findings(output: &Output, envelope: &Value) -> io::Result<()> {
    for problem in list(envelope, "/error/details/errors") {
        let place = match word(problem, "pointer") {
            "" => "/",
            pointer => pointer,
        };
        output.line(format!("  {} {}", place.cyan(), word(problem, "message")))?;
    }
    for repair in list(envelope, "/meta/repairs") {
        output.line(format!("{} {}", "repaired:".yellow(), repaired(repair)))?;
    }
    for warning in list(envelope, "/_warnings") {
        let (code, message) = (word(warning, "code"), word(warning, "message"));
        output.line(format!("{} {code} {message}", "warning:".yellow().bold()))?;
    }
    for breach in list(envelope, "/_violations") {
        let line = breach.get("line").and_then(Value::as_u64);
        let line = line.map_or_else(String::new, |line| format!("line {line}: "));
        let (code, message) = (word(breach, "code"), word(breach, "message"));
        output.line(format!("{} {line}{code} {message}", "stream:".red().bold()))?;
    }
    Ok(())
}

fn list<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    let list = value.pointer(pointer).and_then(Value::as_array);
    list.into_iter().flatten()
}

fn word<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn repaired(repair: &Value) -> String {
    let action = word(repair, "action");
    let place = match word(repair, "pointer") {
        "" => "the answer",
        pointer => pointer,
    };
    let short = |key: &str| repair.get(key).map(|value| shorten(&value.to_string()));
    match (short("before"), short("after")) {
        (Some(before), Some(after)) => format!("{place} {action}: {before} -> {after}"),
        (Some(value), None) | (None, Some(value)) => format!("{place} {action}: {value}"),
        (None, None) => format!("{place} {action}"),
    }
}

/// Shortens a value that is printed in a line with others.
fn shorten(text: &str) -> String {
    const CHARS_MAX: usize = 60;
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or(text)),
        None => String::from(text),
    }
}

pub(crate) fn print_data(output: &Output, data: Option<&Value>) -> io::Result<()> {
    let Some(data) = data else { return Ok(()) };
    let pretty = serde_json::to_string_pretty(data).map_err(io::Error::other)?;
    output.line(pretty)
}

/// Prints fields while they are streamed. Deltas of a text are printed on the same line.
#[derive(Debug, Default)]
pub(crate) struct LiveFields {
    field: String,
}

impl LiveFields {
    pub(crate) fn show(&mut self, output: &Output, chunk: &str) -> io::Result<()> {
        let chunk: Value = serde_json::from_str(chunk).unwrap_or_default();
        let chunk = &chunk["chunk"];
        let field = chunk["field"].as_str().unwrap_or_default();
        let mut stream = output.stdout();
        if field != self.field {
            let gap = if self.field.is_empty() { "" } else { "\n" };
            write!(stream, "{gap}{} ", field.cyan())?;
            self.field = String::from(field);
        }
        match chunk["delta"].as_str() {
            Some(delta) => write!(stream, "{delta}"),
            None => write!(stream, "{}", chunk["data"]),
        }
    }

    pub(crate) fn end(&mut self, output: &Output) -> io::Result<()> {
        if self.field.is_empty() {
            return Ok(());
        }
        self.field.clear();
        write!(output.stdout(), "\n\n")
    }
}
