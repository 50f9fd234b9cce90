//! A response of the server under test, with the accessors that the checks use.

use serde_json::Value;

use super::check::{CheckEnd, fail};
use crate::envelope::{Profile, check_structure};
use crate::stream::{Assembled, assemble_ndjson};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerResponse {
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// One event of a stream in any framing.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ReceivedEvent {
    /// `event:` of server-sent events.
    pub(super) name: Option<String>,
    /// `id:` of server-sent events.
    pub(super) id: Option<String>,
    pub(super) value: Value,
}

impl ReceivedEvent {
    pub(super) fn seq(&self) -> Option<u64> {
        self.value.pointer("/chunk/seq").and_then(Value::as_u64)
    }

    pub(super) fn is_last(&self) -> bool {
        self.value.get("final") == Some(&Value::Bool(true)) || self.value.get("error").is_some()
    }

    /// The name under which server-sent events carry it.
    pub(super) fn kind(&self) -> &'static str {
        let has = |key: &str| self.value.get(key).is_some();
        match () {
            () if has("chunk") => "chunk",
            () if has("progress") => "progress",
            () if has("final") => "final",
            () if has("error") => "error",
            () => "meta",
        }
    }
}

/// Parses events: server-sent events, one JSON document on each line, or WebSocket frames that wrap them.
/// An incomplete last line is ignored.
pub(super) fn parse_events(body: &[u8]) -> Vec<ReceivedEvent> {
    let text = String::from_utf8_lossy(body);
    let whole = text
        .rfind('\n')
        .and_then(|at| text.get(..=at))
        .unwrap_or_default();
    let mut events = Vec::new();
    let (mut name, mut id) = (None, None);
    for line in whole.lines() {
        let field = |prefix: &str| {
            line.strip_prefix(prefix)
                .map(|rest| String::from(rest.trim_start()))
        };
        if let Some(value) = field("event:") {
            name = Some(value);
        } else if let Some(value) = field("id:") {
            id = Some(value);
        } else {
            let text = line.strip_prefix("data:").unwrap_or(line).trim();
            if text.is_empty() {
                (name, id) = (None, None);
            } else if let Ok(value) = serde_json::from_str::<Value>(text) {
                let value = match value.get("type").and_then(Value::as_str) {
                    Some("event" | "error") => value.get("event").cloned().unwrap_or_default(),
                    _ => value,
                };
                events.push(ReceivedEvent {
                    name: name.take(),
                    id: id.take(),
                    value,
                });
            }
        }
    }
    events
}

impl ServerResponse {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The body, if it is JSON.
    pub fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.body).ok()
    }

    pub(super) fn is_stream(&self) -> bool {
        let kind = self.header("content-type").unwrap_or_default();
        ["text/event-stream", "application/x-ndjson"]
            .iter()
            .any(|stream| kind.starts_with(stream))
    }

    pub(super) fn events(&self) -> Vec<ReceivedEvent> {
        parse_events(&self.body)
    }

    /// The events of a stream; fails if the response is not a stream or has no events.
    pub(super) fn stream(&self) -> Result<Vec<ReceivedEvent>, CheckEnd> {
        if !self.is_stream() {
            return fail(format!("expected a stream: {}", self.summary()));
        }
        let events = self.events();
        match events.is_empty() {
            true => fail("the stream has no events"),
            false => Ok(events),
        }
    }

    /// A complete answer: one valid envelope.
    pub(super) fn envelope(&self) -> Result<Value, CheckEnd> {
        if self.is_stream() {
            return fail("expected a complete answer, received a stream");
        }
        let Some(value) = self.json() else {
            return fail(format!("the body is not JSON: {}", self.summary()));
        };
        let mut plain = value.clone();
        if let Value::Object(map) = &mut plain {
            map.retain(|key, _| !key.starts_with('_'));
        }
        match check_structure(&plain, profile(&plain)).first() {
            None => Ok(value),
            Some(violation) => fail(format!("invalid envelope: {}", violation.message)),
        }
    }

    /// A complete answer with `ok: true`.
    pub(super) fn success(&self) -> Result<Value, CheckEnd> {
        let envelope = self.envelope()?;
        match envelope.get("ok") == Some(&Value::Bool(true)) {
            true => Ok(envelope),
            false => fail(format!("the run failed: {}", self.summary())),
        }
    }

    /// The error code of the envelope, or of the last event of a stream.
    pub(super) fn code(&self) -> Option<String> {
        let of = |value: &Value| {
            value
                .pointer("/error/code")
                .and_then(Value::as_str)
                .map(String::from)
        };
        match self.json().as_ref().and_then(of) {
            Some(code) => Some(code),
            None => self.events().last().and_then(|last| of(&last.value)),
        }
    }

    /// The `_warnings` of the envelope and of all events.
    pub(super) fn warnings(&self) -> Vec<Value> {
        let of = |value: &Value| value.get("_warnings").and_then(Value::as_array).cloned();
        let whole = self.json().as_ref().and_then(of).unwrap_or_default();
        let events = self.events();
        let streamed = events.iter().filter_map(|event| of(&event.value)).flatten();
        whole.into_iter().chain(streamed).collect()
    }

    /// Status and body, shortened to one line for reports.
    pub(super) fn summary(&self) -> String {
        let text = String::from_utf8_lossy(&self.body);
        let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let short: String = text.chars().take(160).collect();
        let more = if short.len() < text.len() { "..." } else { "" };
        format!("status {}, {short}{more}", self.status)
    }
}

/// Folds a stream into an envelope; fails with the first violation.
pub(super) fn assemble(body: &[u8]) -> Result<Assembled, CheckEnd> {
    let assembled = assemble_ndjson(body);
    match assembled.violations.first() {
        Some(violation) => fail(violation.to_string()),
        None if !assembled.ended => fail("the stream has no terminal event (final or error)"),
        None => Ok(assembled),
    }
}

/// Envelopes with a `version` belong to the profile that requires one.
fn profile(envelope: &Value) -> Profile {
    match envelope.get("version") {
        Some(_) => Profile::Cep22,
        None => Profile::Cognitive,
    }
}
