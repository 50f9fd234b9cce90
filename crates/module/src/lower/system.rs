//! The system message: the module's identity, its exclusions, and the form of its answer.

use std::fmt::Write as _;

use crate::module::Module;
use crate::schema::Section;

pub(crate) fn message(module: &Module) -> String {
    let manifest = &module.manifest;
    let mut text = format!("You are the module `{}`.", manifest.name);
    if !manifest.responsibility.is_empty() {
        // Writing to a string cannot fail.
        write!(text, " Your responsibility: {}", manifest.responsibility).ok();
    }
    text.push('\n');
    excludes(module, &mut text);
    text.push_str(FORM);
    if let Some(schema) = module.contract.schema(Section::Data) {
        let schema = serde_json::to_string(schema).unwrap_or_default();
        write!(text, "`data` must fit this JSON Schema:\n{schema}\n").ok();
    }
    emits(module, &mut text);
    text
}

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
        writeln!(text, "What a later call should know goes beside `data` into the object `_emitted_context`, under {kinds}.").ok();
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
    text.push_str("\nYou must not:\n");
    for exclude in missing {
        writeln!(text, "- {exclude}").ok();
    }
}

const FORM: &str = r#"
Answer with one JSON object and nothing around it:
{"ok": true, "meta": {"confidence": 0.0 to 1.0, "risk": "none" | "low" | "medium" | "high", "explain": "one sentence of at most 280 characters"}, "data": {"rationale": "the whole reasoning", ...}}
If the task cannot be done, answer:
{"ok": false, "meta": {...}, "error": {"code": "E2004", "message": "why"}}
"#;
