//! The W3C trace context of a call, as sent and received in the header `traceparent`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::id::ParseIdError;

/// A span of a trace. Neither id is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct TraceContext {
    trace_id: u128,
    span_id: u64,
    /// Whether an upstream component records this trace.
    pub sampled: bool,
}

impl TraceContext {
    /// `None` if an id is zero, which means: no trace.
    pub fn new(trace_id: u128, span_id: u64, sampled: bool) -> Option<Self> {
        (trace_id != 0 && span_id != 0).then_some(Self {
            trace_id,
            span_id,
            sampled,
        })
    }

    /// The same trace with a child span.
    pub fn child(self, span_id: u64) -> Self {
        Self {
            span_id: span_id.max(1),
            ..self
        }
    }

    /// In the format of `meta.trace_id` and exporters.
    pub fn trace_id(self) -> String {
        format!("{:032x}", self.trace_id)
    }

    pub fn span_id(self) -> String {
        format!("{:016x}", self.span_id)
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = u8::from(self.sampled);
        write!(f, "00-{:032x}-{:016x}-{flags:02x}", self.trace_id, self.span_id)
    }
}

impl FromStr for TraceContext {
    type Err = ParseIdError;

    /// Of a later version only the known fields are read; version 0 has no further fields.
    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        let mut parts = text.split('-');
        let mut hex = |length: usize| {
            let part = parts.next().filter(|part| part.len() == length)?;
            let is_hex = part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
            is_hex.then(|| u128::from_str_radix(part, 16).ok()).flatten()
        };
        let (version, trace_id) = (hex(2).ok_or(ParseIdError)?, hex(32).ok_or(ParseIdError)?);
        let (span_id, flags) = (hex(16).ok_or(ParseIdError)?, hex(2).ok_or(ParseIdError)?);
        let more = parts.next().is_some();
        if version == 0xff || (version == 0 && more) {
            return Err(ParseIdError);
        }
        let span_id = u64::try_from(span_id).map_err(|_| ParseIdError)?;
        Self::new(trace_id, span_id, flags & 1 == 1).ok_or(ParseIdError)
    }
}

impl From<TraceContext> for String {
    fn from(context: TraceContext) -> Self {
        context.to_string()
    }
}

impl TryFrom<String> for TraceContext {
    type Error = ParseIdError;

    fn try_from(text: String) -> Result<Self, ParseIdError> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::TraceContext;

    #[test]
    fn traceparent_round_trips() {
        let text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let context: TraceContext = text.parse().unwrap();
        assert_eq!(context.to_string(), text);
        assert_eq!(context.trace_id(), "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(context.child(1).span_id(), "0000000000000001");
        let later = text.replacen("00", "cc", 1) + "-more";
        assert_eq!(later.parse(), Ok(context));
    }

    #[test]
    fn invalid_traceparent_is_refused() {
        for text in [
            "",
            "00",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319-b7ad6b7169203331-01",
            "00-+af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ] {
            assert!(text.parse::<TraceContext>().is_err(), "{text}");
        }
    }
}
