//! The results as text: one line per test, followed by the reasons if it failed.

use std::io;

use module::golden::Mismatch;
use owo_colors::OwoColorize;
use serde_json::Value;

use super::case::{Outcome, Status};
use super::report::{ModuleReport, TestReport};
use crate::output::Output;

pub(super) fn print(report: &TestReport, output: &Output) -> io::Result<()> {
    for module in &report.modules {
        print_module(module, output)?;
    }
    let mut figures = vec![format!("{} passed", report.count("passed"))];
    for word in ["failed", "stale", "unrecorded", "broken"] {
        match report.count(word) {
            0 => {}
            count => figures.push(format!("{count} {word}")),
        }
    }
    let modules = plural(report.modules.len(), "module");
    let tests = plural(report.total(), "test");
    output.line(format!("{modules}, {tests}: {}", figures.join(", ")))?;
    for module in report.below_threshold() {
        let (percent, least) = (module.coverage.percent(), report.thresholds.coverage_percent);
        output.line(format!(
            "{} the tests of {} cover {percent:.0} % of its fields, less than {least} %",
            "failed".red().bold(),
            module.name
        ))?;
    }
    Ok(())
}

fn plural(count: usize, word: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {word}{ending}")
}

fn print_module(module: &ModuleReport, output: &Output) -> io::Result<()> {
    let coverage = &module.coverage;
    let fields = if coverage.total() > 0 && !module.outcomes.is_empty() {
        format!(
            " ({} of {} fields covered)",
            coverage.exercised(),
            coverage.total()
        )
    } else {
        String::new()
    };
    output.line(format!("{}{}", module.name.bold(), fields.dimmed()))?;
    if let Some(why) = &module.broken {
        output.line(format!("  {} {why}", "broken".red().bold()))?;
    }
    if module.outcomes.is_empty() && module.broken.is_none() {
        output.line(format!("  {}", "no tests".yellow()))?;
    }
    for input in &module.unlisted {
        let word = "not run".yellow();
        output.line(format!(
            "  {word} {input}: not listed in `tests` of the manifest (M4014)"
        ))?;
    }
    for outcome in &module.outcomes {
        print_outcome(module, outcome, output)?;
    }
    Ok(())
}

fn print_outcome(module: &ModuleReport, outcome: &Outcome, output: &Output) -> io::Result<()> {
    let name = &outcome.name;
    match &outcome.status {
        Status::Passed => output.line(format!("  {} {name}", "passed".green())),
        Status::Failed(found) => {
            output.line(format!("  {} {name}", "failed".red().bold()))?;
            if let Some(error) = outcome
                .envelope
                .as_ref()
                .and_then(|envelope| envelope.get("error"))
            {
                let text = |key: &str| error.get(key).and_then(Value::as_str).unwrap_or_default();
                output.line(format!(
                    "    the run failed with {}: {}",
                    text("code"),
                    text("message")
                ))?;
            }
            found
                .iter()
                .try_for_each(|mismatch| print_mismatch(mismatch, output))
        }
        Status::Stale(difference) => {
            output.line(format!("  {} {name}", "stale".red().bold()))?;
            output.line("    the request differs from the recorded one:")?;
            for line in difference.lines() {
                let line = match line.get(..1) {
                    Some("-") => line.red().to_string(),
                    Some("+") => line.green().to_string(),
                    _ => String::from(line),
                };
                output.line(format!("    {line}"))?;
            }
            hint(module, name, output)
        }
        Status::Unrecorded => {
            output.line(format!("  {} {name}", "unrecorded".red().bold()))?;
            hint(module, name, output)
        }
        Status::Broken(why) => output.line(format!("  {} {name}: {why}", "broken".red().bold())),
    }
}

fn hint(module: &ModuleReport, name: &str, output: &Output) -> io::Result<()> {
    let command = format!(
        "cogn test {} -k {}/{name} --record",
        module.path.display(),
        module.name
    );
    output.line(format!(
        "    {} `{command}` records the answer",
        "hint:".cyan().bold()
    ))
}

fn print_mismatch(mismatch: &Mismatch, output: &Output) -> io::Result<()> {
    let place = match mismatch.pointer.as_str() {
        "" => "/",
        pointer => pointer,
    };
    output.line(format!("    {} {}", place.cyan(), mismatch.message))?;
    if let Some(expected) = &mismatch.expected {
        output.line(format!(
            "      {} {}",
            "expected".dimmed(),
            short(expected).green()
        ))?;
    }
    if let Some(actual) = &mismatch.actual {
        output.line(format!("      {} {}", "got     ".dimmed(), short(actual).red()))?;
    }
    Ok(())
}

fn short(value: &Value) -> String {
    const CHARS_MAX: usize = 200;
    let text = value.to_string();
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or(&text)),
        None => text,
    }
}
