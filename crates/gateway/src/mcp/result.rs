//! Envelopes as results of tools: structured, and as text for hosts that know no structure. One that is not
//! `ok` is an error that the model behind the host can read, with its code and what to do about it.

use ir::RunId;
use module::envelope::Envelope;
use rmcp::ErrorData;
use rmcp::model::{CallToolResult, MetaObject};
use serde_json::{Value, json};

use crate::response::ApiError;

pub(super) fn result(envelope: Value, run: Option<RunId>) -> CallToolResult {
    let good = envelope.get("ok") == Some(&Value::Bool(true));
    let mut result = match good {
        true => CallToolResult::structured(envelope),
        false => CallToolResult::structured_error(envelope),
    };
    if let Some(run) = run {
        let mut meta = MetaObject::default();
        meta.insert(String::from("cogn/session_id"), json!(run.to_string()));
        result.meta = Some(meta);
    }
    result
}

/// What nobody ran is an envelope as well.
pub(super) fn refused(refusal: ApiError) -> CallToolResult {
    result(Envelope::failure(refusal.into_body()).into_value(), None)
}

/// The same where the protocol has no results that are errors.
pub(super) fn fault(refusal: ApiError) -> ErrorData {
    let body = refusal.into_body();
    let data = json!({"code": body.code, "suggestion": body.suggestion});
    ErrorData::invalid_params(body.message, Some(data))
}
