//! What a server said, and the questions that checks put to it.

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

/// The events in these bytes: server-sent events, one JSON document on each line, or frames of a socket
/// around them. What is cut off at the end has not come.
pub(super) fn heard_of(body: &[u8]) -> Vec<ReceivedEvent> {
    let text = String::from_utf8_lossy(body);
    let whole = text
        .rfind('\n')
        .and_then(|at| text.get(..=at))
        .unwrap_or_default();
    let mut heard = Vec::new();
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
                heard.push(ReceivedEvent {
                    name: name.take(),
                    id: id.take(),
                    value,
                });
            }
        }
    }
    heard
}

impl ServerResponse {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The body as JSON, whatever it says.
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
        heard_of(&self.body)
    }

    /// A stream as it should begin: with status 200, and a first event.
    pub(super) fn stream(&self) -> Result<Vec<ReceivedEvent>, CheckEnd> {
        if !self.is_stream() {
            return fail(format!("a stream was expected, and this came: {}", self.summary()));
        }
        let heard = self.events();
        match heard.is_empty() {
            true => fail("the stream has no events"),
            false => Ok(heard),
        }
    }

    /// A whole answer: one envelope that is without fault.
    pub(super) fn envelope(&self) -> Result<Value, CheckEnd> {
        if self.is_stream() {
            return fail("a whole answer was expected, and a stream came");
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
            Some(violation) => fail(format!("the envelope: {}", violation.message)),
        }
    }

    /// A good answer.
    pub(super) fn success(&self) -> Result<Value, CheckEnd> {
        let envelope = self.envelope()?;
        match envelope.get("ok") == Some(&Value::Bool(true)) {
            true => Ok(envelope),
            false => fail(format!("the run failed: {}", self.summary())),
        }
    }

    /// The code of whatever went wrong, whole or at the end of a stream.
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

    /// Codes among the `_warnings`, of the whole answer or of any event.
    pub(super) fn warnings(&self) -> Vec<Value> {
        let of = |value: &Value| value.get("_warnings").and_then(Value::as_array).cloned();
        let whole = self.json().as_ref().and_then(of).unwrap_or_default();
        let heard = self.events();
        let told = heard.iter().filter_map(|event| of(&event.value)).flatten();
        whole.into_iter().chain(told).collect()
    }

    /// The body as something that can be shown in one line.
    pub(super) fn summary(&self) -> String {
        let text = String::from_utf8_lossy(&self.body);
        let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let short: String = text.chars().take(160).collect();
        let more = if short.len() < text.len() { "..." } else { "" };
        format!("status {}, {short}{more}", self.status)
    }
}

/// What a recorded stream adds up to; whatever is wrong with it is a reason.
pub(super) fn assemble(body: &[u8]) -> Result<Assembled, CheckEnd> {
    let assembled = assemble_ndjson(body);
    match assembled.violations.first() {
        Some(violation) => fail(violation.to_string()),
        None if !assembled.ended => fail("the stream has no end: neither final nor error came"),
        None => Ok(assembled),
    }
}

/// Envelopes that carry a `version` are of the profile that demands one.
fn profile(envelope: &Value) -> Profile {
    match envelope.get("version") {
        Some(_) => Profile::Cep22,
        None => Profile::Cognitive,
    }
}
