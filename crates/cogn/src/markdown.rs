//! Renders the embedded pages for a terminal: bold headings, indented code, other text unchanged. Supports
//! only the Markdown of those pages. The output stream removes colours if it is not a terminal.

use owo_colors::OwoColorize;

pub(crate) fn render(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 256);
    let mut in_code = false;
    for line in text.lines() {
        if line.starts_with("```") {
            in_code = !in_code;
            continue;
        }
        if in_code {
            if !line.is_empty() {
                out.push_str(&format!("    {}", line.cyan()));
            }
        } else if let Some(title) = line.strip_prefix("# ") {
            out.push_str(&title.bold().underline().to_string());
        } else if let Some(heading) = line.strip_prefix("## ") {
            out.push_str(&heading.bold().to_string());
        } else {
            inline(line, &mut out);
        }
        out.push('\n');
    }
    out
}

/// Colours text between backticks. The backticks stay, so that code is visible without colours.
fn inline(line: &str, out: &mut String) {
    let mut parts = line.split('`').peekable();
    let mut is_code = false;
    while let Some(part) = parts.next() {
        let closed = parts.peek().is_some();
        if is_code && closed {
            out.push_str(&format!("`{part}`").cyan().to_string());
        } else {
            if is_code {
                out.push('`');
            }
            out.push_str(part);
        }
        is_code = !is_code;
    }
}
