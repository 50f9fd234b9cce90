//! The outcome of a call in the Harmony Schema: the `status` of a JSON object that is the text of the result.
//! `success` may be omitted; `error`, `halted` and `denied` may not.

use std::borrow::Cow;

use ir::{Part, ToolOutcome};
use serde::Deserialize;
use serde_json::json;

fn status(outcome: ToolOutcome) -> &'static str {
    match outcome {
        ToolOutcome::Success => "success",
        ToolOutcome::Error => "error",
        ToolOutcome::Denied => "denied",
        ToolOutcome::Halted => "halted",
    }
}

/// All other fields are skipped without being stored.
#[derive(Deserialize)]
struct Declared<'a> {
    #[serde(borrow, default)]
    status: Option<Cow<'a, str>>,
}

/// The outcome that the first text of a result declares.
pub(super) fn read(content: &[Part]) -> ToolOutcome {
    let text = content.iter().find_map(Part::as_text);
    let parsed = text
        .filter(|text| text.trim_start().starts_with('{'))
        .and_then(|text| serde_json::from_str::<Declared<'_>>(text).ok());
    match parsed.and_then(|declared| declared.status).as_deref() {
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
