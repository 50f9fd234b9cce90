//! Response mode and framing of a request. Pure: signals in, decision out. The first signal that is present
//! wins, from the explicit header down to the default of the module.

mod accept;

use axum::http::HeaderMap;
use engine::RunMode;
use engine::run::Warning;
use module::Code;
use module::envelope::ErrorBody;
use module::manifest::ResponseMode;
use serde::Deserialize;
use serde_json::Value;

pub(crate) use self::accept::Accept;
use crate::framing::Framing;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RequestedMode {
    Sync,
    Streaming,
}

/// Response mode requested by each source, strongest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ModeSignals {
    pub(crate) header: Option<RequestedMode>,
    pub(crate) body: Option<RequestedMode>,
    pub(crate) query: Option<RequestedMode>,
    pub(crate) accept: Option<RequestedMode>,
    pub(crate) framing: Framing,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Negotiated {
    pub(crate) mode: RunMode,
    pub(crate) warning: Option<Downgrade>,
}

/// The response mode differs from the requested one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Downgrade {
    reason: &'static str,
}

impl Downgrade {
    pub(crate) fn header(self) -> String {
        format!("STREAMING_UNAVAILABLE; fallback=sync; reason={}", self.reason)
    }

    pub(crate) fn warning(self) -> Warning {
        let mut warning = Warning::new(Code::W4010, "a complete response is returned instead of a stream");
        warning
            .extra
            .insert(String::from("fallback_used"), Value::from("sync"));
        warning
            .extra
            .insert(String::from("reason"), Value::from(self.reason));
        warning
    }
}

impl ModeSignals {
    /// Signals of the headers; the caller of this function adds those of body and query.
    pub(crate) fn from_headers(headers: &HeaderMap) -> Result<Self, Box<ErrorBody>> {
        let header = headers.get("x-cognitive-response-mode");
        let header = header.map(|value| parse_mode(value.to_str().unwrap_or_default()));
        let (accept, framing) = Accept::of(headers).preferred.unzip();
        Ok(Self {
            header: header.transpose()?,
            accept,
            framing: framing.unwrap_or_default(),
            ..Self::default()
        })
    }

    pub(crate) fn negotiate(&self, module: ResponseMode, strict: bool) -> Result<Negotiated, Box<ErrorBody>> {
        let requested = self.header.or(self.body).or(self.query).or(self.accept);
        let (mode, reason) = match (module, requested) {
            (ResponseMode::Both, Some(RequestedMode::Streaming)) => (RunMode::Stream, None),
            (ResponseMode::Both, Some(RequestedMode::Sync) | None) => (RunMode::Sync, None),
            (ResponseMode::Streaming, Some(RequestedMode::Streaming) | None) => (RunMode::Stream, None),
            (ResponseMode::Streaming, Some(RequestedMode::Sync)) => (RunMode::Sync, Some("module_streams")),
            (ResponseMode::Sync, Some(RequestedMode::Streaming)) => (RunMode::Sync, Some("module_is_sync")),
            (ResponseMode::Sync, Some(RequestedMode::Sync) | None) => (RunMode::Sync, None),
        };
        match reason {
            Some(reason) if strict => {
                let message = "the module does not support the requested response mode";
                Err(Box::new(
                    ErrorBody::new(Code::E4010, message).detail("reason", reason),
                ))
            }
            reason => Ok(Negotiated {
                mode,
                warning: reason.map(|reason| Downgrade { reason }),
            }),
        }
    }
}

pub(crate) fn parse_mode(text: &str) -> Result<RequestedMode, Box<ErrorBody>> {
    match text.trim() {
        "sync" => Ok(RequestedMode::Sync),
        "streaming" => Ok(RequestedMode::Streaming),
        other => {
            let message = format!("`{other}` is not a response mode; supported: `sync`, `streaming`");
            Err(Box::new(ErrorBody::new(Code::E1004, message)))
        }
    }
}

#[cfg(test)]
mod tests;
