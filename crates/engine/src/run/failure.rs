//! Envelopes of failed runs, and the error body for an upstream error.

use ir::{ErrorKind, Usage};
use module::Code;
use module::envelope::{Envelope, EnvelopeBody, ErrorBody, Meta};
use serde_json::{Map, Value, json};

use super::command::RunMode;
use crate::settings::Settings;

/// A failure reported by the runtime, with confidence 0 and high risk.
pub(super) fn failure(error: ErrorBody, partial_data: Option<Map<String, Value>>) -> Envelope {
    Envelope {
        meta: Meta::of_failure(&error.message),
        body: EnvelopeBody::Failure {
            error: Box::new(error),
            partial_data,
        },
        annotations: Map::new(),
    }
}

/// The error of a run that no back-end could finish.
pub(super) fn from_upstream_error(
    error: &ir::Error,
    content_sent: bool,
    mode: RunMode,
    settings: &Settings,
) -> ErrorBody {
    let code = match error.kind {
        ErrorKind::RateLimited => Code::E4002,
        ErrorKind::Timeout => match mode {
            RunMode::Sync => Code::E2002,
            RunMode::Stream => Code::E2011,
        },
        ErrorKind::ContextWindow => Code::E4003,
        ErrorKind::ModelRequired => Code::E1002,
        ErrorKind::Unsupported => Code::E4011,
        ErrorKind::Quota => Code::E4016,
        ErrorKind::Auth => Code::E4007,
        ErrorKind::ContentPolicy => Code::E2004,
        _ if content_sent => Code::E2010,
        ErrorKind::InvalidResponse | ErrorKind::AnswerTooLarge => Code::E3001,
        _ => Code::E4001,
    };
    let mut body = ErrorBody::new(code, error.message_with_reasons());
    if code == Code::E3001 {
        body = body.detail("reason", "invalid_response");
    }
    if code == Code::E1002 {
        body = body.detail("field", "_options.model");
    }
    if let Some(status) = error.status {
        body = body.detail("upstream_status", status);
    }
    if let Some(search) = &error.search {
        body = body.detail("rejected", json!(search.rejected_reasons));
    }
    if let Some(search) = error.search.as_ref().filter(|_| code == Code::E4011) {
        body = body.detail("backends", json!(search.rejected_reasons));
    }
    // E4002 always has a delay, even if the back-end sent none.
    let pause_ms = (code == Code::E4002).then_some(settings.retry_after_ms);
    if let Some(retry_after_ms) = error.retry_after_ms.or(pause_ms) {
        body = body.detail("retry_after_ms", retry_after_ms);
    }
    body
}

/// Usage as clients see it; unknown is null.
pub(super) fn usage_value(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens(),
    })
}
