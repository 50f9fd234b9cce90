//! The reask after an answer that violates the contract: the same request, followed by the answer and its
//! violations.

use std::sync::Arc;

use ir::{Message, Payload, Request, Role};
use module::envelope::ErrorBody;
use module::manifest::{Access, FailureContract};
use module::{Code, Module};
use serde_json::Value;

use crate::limits;

/// Whether a second answer may fix this failure, for a module that allows it. A module that may have side
/// effects is never reasked.
pub(super) fn is_repairable(module: &Module, error: &ErrorBody) -> bool {
    let failure = &module.manifest.failure;
    let allowed = failure.reask
        && failure.contract == FailureContract::ErrorUnion
        && module.manifest.policies.access("side_effects") == Access::Deny;
    let code = [Code::E1000, Code::E2012, Code::E3001]
        .iter()
        .any(|code| error.code == code.as_str());
    // Low confidence is not an error of form; the gate handles it.
    let unsure = error.details.as_ref().and_then(|details| details.get("reason"));
    allowed && code && unsure.and_then(Value::as_str) != Some("low_confidence")
}

/// Builds the request of the reask.
pub(super) fn request(before: &Arc<Request>, reply: &str, error: &ErrorBody) -> Option<Arc<Request>> {
    let mut request = Request::clone(before);
    let Payload::Chat(chat) = &mut request.payload else {
        return None;
    };
    let shown = reply
        .get(..reply.floor_char_boundary(limits::REASK_REPLY_BYTES_MAX))
        .unwrap_or(reply);
    // A text that repeats itself would only be continued.
    let repeats = error.code == Code::E2012.as_str();
    if !shown.trim().is_empty() && !repeats {
        chat.messages.push(Message::text(Role::Assistant, shown));
    }
    chat.messages.push(Message::text(Role::User, feedback(error)));
    Some(Arc::new(request))
}

/// The prompt with the violations, one per line.
fn feedback(error: &ErrorBody) -> String {
    let mut text = format!("Your answer does not keep the contract: {}\n", error.message);
    let listed = error.details.as_ref().and_then(|details| details.get("errors"));
    for violation in listed.and_then(Value::as_array).into_iter().flatten() {
        let part = |key: &str| violation.get(key).and_then(Value::as_str).unwrap_or_default();
        text.push_str(&format!("- {}: {}\n", part("pointer"), part("message")));
    }
    text.push_str("Answer again with one JSON object in the form that was asked for, and nothing around it.");
    text
}
