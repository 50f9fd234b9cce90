//! Envelopes as tool results: structured, and as text for hosts without structured results. An envelope that
//! is not `ok` is a tool error, which the model can read with its code and suggestion.

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

/// An error before the run is an envelope as well.
pub(super) fn refused(refusal: ApiError) -> CallToolResult {
    result(Envelope::failure(refusal.into_body()).into_value(), None)
}

/// The same for methods without error results.
pub(super) fn fault(refusal: ApiError) -> ErrorData {
    let body = refusal.into_body();
    let data = json!({"code": body.code, "suggestion": body.suggestion});
    ErrorData::invalid_params(body.message, Some(data))
}
