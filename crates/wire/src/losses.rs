//! Losses that most dialects share: fields and usage counts without a field in the dialect, and call arguments that
//! are not an object where the dialect requires one.

use ir::{Action, Dialect, Ledger, Message, Reasoning, ToolCall, Usage};
use serde_json::{Value, json};

/// Records the present fields, of those below `pointer` that the dialect does not support.
pub(crate) fn record_losses(own: Dialect, pointer: &str, fields: &[(&str, bool)], ledger: &mut Ledger) {
    for (key, _) in fields.iter().filter(|(_, there)| *there) {
        ledger.dropped(format!("{pointer}/{key}"), format!("not supported by {own}"));
    }
}

/// The same for the fields of a message besides its role and parts.
pub(crate) fn record_message_losses(own: Dialect, pointer: &str, message: &Message, ledger: &mut Ledger) {
    let lost = [
        ("id", message.id.is_some()),
        ("name", message.name.is_some()),
        ("created_at", message.created_at.is_some()),
        ("cache", message.cache.is_some()),
        ("metadata", message.metadata.is_some()),
    ];
    record_losses(own, pointer, &lost, ledger);
}

/// The same for what proves the origin of reasoning.
pub(crate) fn record_proof_losses(own: Dialect, pointer: &str, reasoning: &Reasoning, ledger: &mut Ledger) {
    let lost = [
        ("signature", reasoning.signature.is_some()),
        ("data", reasoning.data.is_some()),
    ];
    record_losses(own, pointer, &lost, ledger);
}

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
    record_losses(own, "/result/payload/usage", wordless, ledger);
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
