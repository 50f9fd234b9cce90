//! What no dialect but a few can say, told in one place: which counts of an account are left out, and
//! arguments of a call that are no object where only an object will do.

use ir::{Action, Dialect, Ledger, ToolCall, Usage};
use serde_json::{Value, json};

/// Books the counts that are there and that the dialect has no word for. An account that came from the
/// dialect goes back whole.
pub(crate) fn record_usage_losses(own: Dialect, usage: &Usage, wordless: &[(&str, bool)], ledger: &mut Ledger) {
    if usage.raw_in(own).is_some() {
        return;
    }
    for (key, _) in wordless.iter().filter(|(_, there)| *there) {
        ledger.dropped(
            format!("/result/payload/usage/{key}"),
            format!("{own} has no word for it"),
        );
    }
}

/// The arguments of a call. Text that is no JSON is wrapped, so that the model still sees it.
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
