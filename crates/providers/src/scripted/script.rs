//! The YAML format: a list of exchanges, parsed strictly.

use std::collections::BTreeMap;

use ir::Event;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Script(pub Vec<Exchange>);

/// One response and its conditions. Its content is either `reply` or `events` or `status`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Exchange {
    /// The request that this responds to, in a recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<Recorded>,
    /// The back-end of the recorded response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend: Option<RecordedBackend>,
    /// A required substring of the request's text; absent matches every request.
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// The model's text. A value other than a string is serialized as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply: Option<Value>,
    /// The events of the response, if text is not sufficient.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<Event>>,
    /// A delay before each event.
    #[serde(skip_serializing_if = "is_zero")]
    pub delay_ms: u64,
    /// Bytes of the reply per delta; if absent, one delta.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunk_bytes: Option<usize>,
    /// The stream ends with an error after this many bytes of the reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut_after_bytes: Option<usize>,
    /// The HTTP status of an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Response headers over HTTP; `retry-after` also sets the retry delay.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Maximum number of uses; unlimited if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
}

/// A request in a recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// The hash of the request; used for matching.
    pub sha256: String,
    /// The request, for reviewing differences; not used for matching.
    #[serde(default)]
    pub asked: Value,
}

/// The back-end of a recorded response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedBackend {
    pub name: String,
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    #[error("the script has {0} bytes, more than {max}", max = crate::limits::SCRIPT_BYTES_MAX)]
    TooLarge(usize),
    #[error("the script is not of the expected form: {0}")]
    Form(String),
    #[error("exchange {0} needs exactly one of reply, events and status")]
    Answer(usize),
}

impl Script {
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        if text.len() > crate::limits::SCRIPT_BYTES_MAX {
            return Err(ScriptError::TooLarge(text.len()));
        }
        let script: Self = serde_saphyr::from_str(text)
            .map_err(|error| ScriptError::Form(error.without_snippet().to_string()))?;
        for (number, exchange) in (1..).zip(&script.0) {
            let given = [
                exchange.reply.is_some(),
                exchange.events.is_some(),
                exchange.status.is_some(),
            ];
            if given.iter().filter(|given| **given).count() != 1 {
                return Err(ScriptError::Answer(number));
            }
        }
        Ok(script)
    }
}

impl Exchange {
    /// The `retry-after` header, converted from seconds.
    pub fn retry_after_ms(&self) -> Option<u64> {
        let header = self
            .headers
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case("retry-after"));
        let seconds: u64 = header?.1.trim().parse().ok()?;
        seconds.checked_mul(1000)
    }

    pub fn reply_text(&self) -> String {
        match &self.reply {
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
            None => String::new(),
        }
    }
}
