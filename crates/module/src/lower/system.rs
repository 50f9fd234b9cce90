//! The system message: the module's identity, its exclusions, and the form of its answer.

use std::fmt::Write as _;

use crate::module::Module;

pub(crate) fn message(module: &Module) -> String {
    let manifest = &module.manifest;
    let mut text = format!("You are the module `{}`.", manifest.name);
    let responsibility = manifest.responsibility.trim();
    if !responsibility.is_empty() {
        let end = if responsibility.ends_with(['.', '!', '?', '。']) {
            ""
        } else {
            "."
        };
        // Writing to a string cannot fail.
        write!(text, " Your responsibility: {responsibility}{end}").ok();
    }
    text.push('\n');
    excludes(module, &mut text);
    text.push_str(FORM);
    if let Some(schema) = module.data_schema() {
        let schema = serde_json::to_string(schema).unwrap_or_default();
        write!(text, "{SCHEMA_LEAD}\n{schema}\n").ok();
    }
    emits(module, &mut text);
    text
}

/// The text before the schema.
pub(crate) const SCHEMA_LEAD: &str = "`data` must match this JSON Schema:";

/// The context that the module may emit for later calls.
fn emits(module: &Module, text: &mut String) {
    let kinds: Vec<String> = module
        .manifest
        .context
        .emits
        .iter()
        .map(|emit| format!("`{}`", emit.kind))
        .collect();
    if !kinds.is_empty() {
        let kinds = kinds.join(", ");
        writeln!(text, "Put what a later call should know into the object `_emitted_context` beside `data`, under {kinds}.").ok();
    }
}

/// The exclusions, except those that the prompt already contains.
fn excludes(module: &Module, text: &mut String) {
    let mut missing = module
        .manifest
        .excludes
        .iter()
        .filter(|exclude| !module.prompt.contains(exclude.as_str()))
        .peekable();
    if missing.peek().is_none() {
        return;
    }
    text.push_str("\nThe following is not allowed:\n");
    for exclude in missing {
        writeln!(text, "- {exclude}").ok();
    }
}

/// Without an example: a small model copies it instead of answering.
const FORM: &str = r#"
Answer with one JSON object and nothing around it. Its fields:
- `ok`: true
- `meta`: an object with `confidence` (0 to 1), `risk` ("none", "low", "medium" or "high") and `explain` (one sentence, at most 280 characters)
- `data`: the result, with your reasoning in `rationale`
If the task cannot be done, set `ok` to false and write `error` instead of `data`: an object with `code` ("E2004") and `message`.
"#;
