//! The outcome of a call in the Harmony Schema: the `status` of a JSON object that is the text of the result.
//! `success` may be omitted; `error`, `halted` and `denied` may not.

use ir::{Part, ToolOutcome};
use serde_json::{Value, json};

fn status(outcome: ToolOutcome) -> &'static str {
    match outcome {
        ToolOutcome::Success => "success",
        ToolOutcome::Error => "error",
        ToolOutcome::Denied => "denied",
        ToolOutcome::Halted => "halted",
    }
}

/// The outcome that the first text of a result declares.
pub(super) fn read(content: &[Part]) -> ToolOutcome {
    let text = content.iter().find_map(Part::as_text);
    let parsed = text
        .filter(|text| text.trim_start().starts_with('{'))
        .and_then(|text| serde_json::from_str::<Value>(text).ok());
    match parsed.as_ref().and_then(|value| value["status"].as_str()) {
        Some("error") => ToolOutcome::Error,
        Some("denied") => ToolOutcome::Denied,
        Some("halted") => ToolOutcome::Halted,
        _ => ToolOutcome::Success,
    }
}

/// The text of a result wrapped with its outcome, for a text that does not state it.
pub(super) fn wrap(outcome: ToolOutcome, text: &str) -> String {
    json!({"status": status(outcome), "message": text}).to_string()
}
