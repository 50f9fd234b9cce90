//! The results as JUnit XML for CI systems.

use std::fmt::Write as _;

use module::golden::Mismatch;

use super::case::{Outcome, Status};
use super::report::{ModuleReport, TestReport};

pub(super) fn render(report: &TestReport) -> String {
    let failures = report.total() - report.count("passed") - report.count("broken");
    let errors = report.count("broken") + report.modules.iter().filter(|m| m.broken.is_some()).count();
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // Writing to a string cannot fail.
    writeln!(
        xml,
        "<testsuites name=\"cogn\" tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\">",
        report.total()
    )
    .ok();
    for module in &report.modules {
        suite(&mut xml, module);
    }
    xml.push_str("</testsuites>\n");
    xml
}

fn suite(xml: &mut String, module: &ModuleReport) {
    let count = |wanted: &[&str]| {
        let outcomes = module.outcomes.iter();
        outcomes
            .filter(|outcome| wanted.contains(&outcome.status.word()))
            .count()
    };
    let millis: u64 = module.outcomes.iter().map(|outcome| outcome.elapsed_ms).sum();
    writeln!(
        xml,
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" time=\"{}\">",
        escaped(&module.name),
        module.outcomes.len(),
        count(&["failed", "stale", "unrecorded"]),
        count(&["broken"]) + usize::from(module.broken.is_some()),
        seconds(millis),
    )
    .ok();
    if let Some(why) = &module.broken {
        case(xml, module, "module", 0, &tag("error", "broken", why));
    }
    for outcome in &module.outcomes {
        case(xml, module, &outcome.name, outcome.elapsed_ms, &result(outcome));
    }
    xml.push_str("  </testsuite>\n");
}

fn case(xml: &mut String, module: &ModuleReport, name: &str, millis: u64, result: &str) {
    let (class, name) = (escaped(&module.name), escaped(name));
    let open = format!(
        "    <testcase classname=\"{class}\" name=\"{name}\" time=\"{}\"",
        seconds(millis)
    );
    if result.is_empty() {
        writeln!(xml, "{open}/>").ok();
    } else {
        writeln!(xml, "{open}>\n      {result}\n    </testcase>").ok();
    }
}

fn result(outcome: &Outcome) -> String {
    match &outcome.status {
        Status::Passed => String::new(),
        Status::Failed(found) => tag(
            "failure",
            "failed",
            &found.iter().map(line).collect::<Vec<_>>().join("\n"),
        ),
        Status::Stale(difference) => tag(
            "failure",
            "stale",
            &format!("the request differs from the recorded one\n{difference}"),
        ),
        Status::Unrecorded => tag("failure", "unrecorded", "no recording found"),
        Status::Broken(why) => tag("error", "broken", why),
    }
}

/// A mismatch in one line.
pub(super) fn line(mismatch: &Mismatch) -> String {
    let mut text = format!("{} {}", mismatch.pointer, mismatch.message);
    if let Some(expected) = &mismatch.expected {
        write!(text, ", expected {expected}").ok();
    }
    if let Some(actual) = &mismatch.actual {
        write!(text, ", got {actual}").ok();
    }
    text
}

fn tag(name: &str, kind: &str, text: &str) -> String {
    let first = text.lines().next().unwrap_or_default();
    format!(
        "<{name} type=\"{kind}\" message=\"{}\">{}</{name}>",
        escaped(first),
        escaped(text)
    )
}

fn seconds(millis: u64) -> String {
    format!("{}.{:03}", millis / 1000, millis % 1000)
}

/// Escapes markup. Control characters are replaced, because XML 1.0 cannot represent most of them.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\n' | '\t' => safe.push(letter),
            '\u{fffe}' | '\u{ffff}' => safe.push('\u{fffd}'),
            letter if letter.is_control() => safe.push('\u{fffd}'),
            letter => safe.push(letter),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn escapes_markup_and_control_characters() {
        assert_eq!(
            escaped("a<b>&\"c\"\u{0}\u{1b}"),
            "a&lt;b&gt;&amp;&quot;c&quot;\u{fffd}\u{fffd}"
        );
    }
}
