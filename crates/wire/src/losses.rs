//! Losses that most dialects share: usage counts and fields of reasoning without a field in the dialect, and
//! call arguments that are not an object where the dialect requires one.

use ir::{Action, Dialect, Ledger, Reasoning, ToolCall, Usage};
use serde_json::{Value, json};

/// Records the present counts that the dialect does not support. Usage that came from the same dialect is
/// encoded completely.
pub(crate) fn record_usage_losses(
    own: Dialect,
    usage: &Usage,
    wordless: &[(&str, bool)],
    ledger: &mut Ledger,
) {
    if usage.raw_in(own).is_some() {
        return;
    }
    for (key, _) in wordless.iter().filter(|(_, there)| *there) {
        ledger.dropped(
            format!("/result/payload/usage/{key}"),
            format!("not supported by {own}"),
        );
    }
}

/// Records the present fields of reasoning, of those named in `keys`, which the dialect does not support.
pub(crate) fn record_reasoning_losses(
    own: Dialect,
    reasoning: &Reasoning,
    keys: &[&str],
    pointer: &str,
    ledger: &mut Ledger,
) {
    let fields = [
        ("id", reasoning.id.is_some()),
        ("signature", reasoning.signature.is_some()),
        ("data", reasoning.data.is_some()),
    ];
    for (key, _) in fields.iter().filter(|(key, there)| *there && keys.contains(key)) {
        ledger.dropped(format!("{pointer}/{key}"), format!("not supported by {own}"));
    }
}

/// The arguments of a call. Text that is not JSON is wrapped in an object, so that the model still receives
/// it.
pub(crate) fn arguments_as_object(call: &ToolCall, pointer: &str, ledger: &mut Ledger) -> Value {
    if let Some(value) = &call.arguments {
        return value.clone();
    }
    let wrapped = json!({"arguments_raw": call.arguments_raw});
    ledger.changed(
        format!("{pointer}/arguments_raw"),
        Action::Replaced,
        json!(call.arguments_raw),
        wrapped.clone(),
        "not JSON",
    );
    wrapped
}
