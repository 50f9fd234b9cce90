//! Decodes the body of a failed call, which may be the dialect's JSON, the JSON of another gateway, or an
//! HTML page of a proxy. Status and message are preserved in every case.

use ir::{Dialect, Error, ErrorKind, Fields, Phase};
use serde_json::Value;

use crate::limits::ERROR_QUOTE_BYTES_MAX;
use crate::timestamp;

/// The error of a response with this status. `retry_after` is the value of the header, if present.
pub fn decode(dialect: Dialect, status: u16, retry_after: Option<&str>, body: &[u8]) -> Error {
    let parsed = serde_json::from_slice::<Value>(body).ok();
    let mut error = parsed
        .and_then(|value| from_value(dialect, &value, Phase::BeforeFirstByte, Some(status)))
        .unwrap_or_else(|| {
            let message = format!("the back-end answered with status {status}: {}", quote(body));
            Error::new(ErrorKind::from_status(status), Phase::BeforeFirstByte, message)
        });
    error.status = Some(status);
    if let Some(text) = retry_after {
        error.retry_after_ms = retry_after_ms(text).or(error.retry_after_ms);
    }
    error
}

/// The error inside a response with a success status, if there is one.
pub fn inside(dialect: Dialect, body: &Value) -> Option<Error> {
    from_value(dialect, body, Phase::BeforeFirstByte, None)
}

/// Decodes an error from any of the known JSON shapes; `None` if the value is not an error.
pub(crate) fn from_value(
    dialect: Dialect,
    value: &Value,
    phase: Phase,
    status: Option<u16>,
) -> Option<Error> {
    let fields = match value {
        // Gemini wraps the error of a stream in a list.
        Value::Array(list) => list.first()?.as_object()?,
        value => value.as_object()?,
    };
    let text = |key: &str| fields.get(key).and_then(Value::as_str);
    let inner = match fields.get("error") {
        // Ollama and others send only a message; some add a code or a status.
        Some(Value::String(message)) => {
            let beside = ["status_code", "status"]
                .iter()
                .find_map(|key| fields.get(*key)?.as_u64());
            let beside = beside.and_then(|code| u16::try_from(code).ok());
            let status = status.or_else(|| beside.filter(|code| (400..600).contains(code)));
            let kind = kind_of(dialect, text("code"), message, status);
            return Some(Error {
                status,
                ..Error::new(kind, phase, message.clone())
            });
        }
        Some(Value::Object(inner)) => inner,
        Some(_) => return None,
        // Some servers omit the wrapper.
        None if text("object") == Some("error") => fields,
        None if text("type") == Some("error") => fields,
        None => return None,
    };
    Some(from_fields(dialect, Fields::new(inner.clone()), phase, status))
}

/// The error in an object with the error fields at its top level.
pub(crate) fn from_fields(dialect: Dialect, mut inner: Fields, phase: Phase, status: Option<u16>) -> Error {
    let message = inner
        .string("message")
        .unwrap_or_else(|| Value::Object(inner.clone().rest()).to_string());
    let number = inner
        .peek("code")
        .and_then(Value::as_u64)
        .and_then(|code| u16::try_from(code).ok());
    let status = status.or_else(|| number.filter(|code| (400..600).contains(code)));
    let words = ["code", "type", "status"].map(|key| inner.string(key));
    let word = words
        .iter()
        .flatten()
        .find(|word| !word.is_empty() && *word != "error")
        .cloned();
    let all = words
        .iter()
        .flatten()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(" ");
    let kind = kind_of(dialect, Some(&all), &message, status);
    let mut error = Error::new(kind, phase, message).with_provider_code(word);
    error.status = status;
    error.retry_after_ms = inner.peek("details").and_then(retry_delay_ms);
    error
}

/// Google sends the retry delay in the body: `{"@type": "..RetryInfo", "retryDelay": "34.5s"}`.
fn retry_delay_ms(details: &Value) -> Option<u64> {
    let mut delays = details
        .as_array()?
        .iter()
        .filter_map(|detail| detail.get("retryDelay"));
    retry_after_ms(delays.next()?.as_str()?.strip_suffix('s')?)
}

/// The vendor's error code takes precedence over the status, and the status over the message text.
fn kind_of(_dialect: Dialect, words: Option<&str>, message: &str, status: Option<u16>) -> ErrorKind {
    let words = words.unwrap_or_default();
    let matches_any = |needles: &[&str]| needles.iter().any(|needle| words.contains(needle));
    let lower = message.to_lowercase();
    let context = [
        "context length",
        "context window",
        "context size",
        "prompt is too long",
        "too many tokens",
        // A single request above the tokens per minute, which OpenAI answers with 429: waiting does not help.
        // https://platform.openai.com/docs/guides/error-codes
        "request too large",
    ];
    if matches_any(&["context_length_exceeded", "exceed_context_size"])
        || context.iter().any(|part| lower.contains(part))
    {
        return ErrorKind::ContextWindow;
    }
    if matches_any(&["insufficient_quota", "billing_error", "billing_hard_limit"]) {
        return ErrorKind::Quota;
    }
    if matches_any(&["rate_limit", "RESOURCE_EXHAUSTED", "too_many_requests"]) {
        return ErrorKind::RateLimited;
    }
    if matches_any(&[
        "authentication",
        "permission",
        "invalid_api_key",
        "UNAUTHENTICATED",
        "PERMISSION_DENIED",
    ]) {
        return ErrorKind::Auth;
    }
    if matches_any(&["content_filter", "content_policy", "moderation_blocked"]) {
        return ErrorKind::ContentPolicy;
    }
    if matches_any(&["timeout", "DEADLINE_EXCEEDED"]) {
        return ErrorKind::Timeout;
    }
    if matches_any(&[
        "overloaded",
        "server_error",
        "api_error",
        "UNAVAILABLE",
        "INTERNAL",
        "internal_error",
    ]) {
        return ErrorKind::Upstream;
    }
    if matches_any(&["not_found", "NOT_FOUND"]) {
        return ErrorKind::NotEnabled;
    }
    if matches_any(&["invalid_request", "INVALID_ARGUMENT", "FAILED_PRECONDITION"]) {
        return ErrorKind::InvalidRequest;
    }
    status.map_or(ErrorKind::Upstream, ErrorKind::from_status)
}

/// `Retry-After` in seconds, from either of its two forms. A date is relative to the `Date` header of the
/// same response, because it refers to the server's clock; the local clock is not read.
pub fn retry_after_seconds(text: &str, date: Option<&str>) -> Option<String> {
    if retry_after_ms(text).is_some() {
        return Some(String::from(text));
    }
    let then = timestamp::parse_http(text.trim())?;
    let now = timestamp::parse_http(date?.trim())?;
    Some(then.saturating_sub(now).to_string())
}

/// The form in seconds, which most servers send.
fn retry_after_ms(text: &str) -> Option<u64> {
    let seconds: f64 = text.trim().parse().ok()?;
    (0.0..1e9).contains(&seconds).then_some((seconds * 1000.0) as u64)
}

/// The beginning of a body that is not JSON, as one line, truncated at a character boundary.
fn quote(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body.get(..ERROR_QUOTE_BYTES_MAX).unwrap_or(body));
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.is_empty() {
        String::from("(no body)")
    } else {
        line
    }
}

/// The HTTP status that a client receives for an error.
pub fn status_of(error: &Error) -> u16 {
    match error.kind {
        ErrorKind::InvalidRequest
        | ErrorKind::ModelRequired
        | ErrorKind::ContextWindow
        | ErrorKind::ContentPolicy
        | ErrorKind::Unsupported => 400,
        ErrorKind::Auth => 401,
        ErrorKind::Quota => 402,
        ErrorKind::RateLimited => 429,
        ErrorKind::Cancelled => 499,
        ErrorKind::Timeout => 504,
        ErrorKind::NoCandidate | ErrorKind::NotEnabled => 503,
        ErrorKind::Network | ErrorKind::Upstream | ErrorKind::InvalidResponse | ErrorKind::AnswerTooLarge => {
            502
        }
        ErrorKind::Internal => 500,
    }
}
