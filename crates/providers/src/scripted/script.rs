//! The YAML form: a list of exchanges, read strictly.

use std::collections::BTreeMap;

use ir::Event;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Script(pub Vec<Exchange>);

/// One answer and when it is given. Either `reply` or `events` or `status` says what it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Exchange {
    /// The one request that this answers, in a recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<Recorded>,
    /// Who answered it then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend: Option<RecordedBackend>,
    /// A part of the request's text that must be there; absent fits everything.
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// What the model writes. Anything but a string stands for its JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply: Option<Value>,
    /// The events of the answer one by one, where text alone cannot say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<Event>>,
    /// A pause before each event.
    #[serde(skip_serializing_if = "is_zero")]
    pub delay_ms: u64,
    /// How many bytes of the reply come at once; all, where it is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunk_bytes: Option<usize>,
    /// The stream dies after so many bytes of the reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut_after_bytes: Option<usize>,
    /// The HTTP status of a refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Headers of the answer, where it goes over HTTP; `retry-after` also tells when to come back.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// How often this exchange answers; without limit where it is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
}

/// A request as a recording knows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// The hash of what was asked; this decides.
    pub sha256: String,
    /// What was asked, for those who want to see what has changed since.
    #[serde(default)]
    pub asked: Value,
}

/// Who gave a recorded answer.
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
    /// What the header `retry-after` says, in seconds.
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
