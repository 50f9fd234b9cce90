//! The `Accept` headers of a request, with their weights.

use axum::http::HeaderMap;
use axum::http::header::ACCEPT;

use super::RequestedMode;
use crate::framing::Framing;

/// What `Accept` says about the media types that this server sends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Accept {
    /// The first of those with the highest weight.
    pub(crate) preferred: Option<(RequestedMode, Framing)>,
    /// The framings with weight 0.
    refused: Vec<Framing>,
}

impl Accept {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let mut accept = Self::default();
        let mut most = 0.0;
        let values = headers.get_all(ACCEPT).iter();
        for range in values
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
        {
            let mut parts = range.split(';').map(str::trim);
            let (mode, framing) = match parts.next().unwrap_or_default() {
                "text/event-stream" => (RequestedMode::Streaming, Framing::Sse),
                "application/x-ndjson" => (RequestedMode::Streaming, Framing::Ndjson),
                "application/json" => (RequestedMode::Sync, Framing::Sse),
                _ => continue,
            };
            let weight = parts.find_map(|part| part.strip_prefix(['q', 'Q'])?.strip_prefix('='));
            let weight = weight.and_then(|weight| weight.parse().ok()).unwrap_or(1.0);
            if weight > most {
                most = weight;
                accept.preferred = Some((mode, framing));
            } else if weight <= 0.0 && mode == RequestedMode::Streaming {
                accept.refused.push(framing);
            }
        }
        accept
    }

    /// The framing of a response that streams if the request asks for it elsewhere, too.
    pub(crate) fn framing(&self, streams: bool) -> Option<Framing> {
        match self.preferred {
            Some((RequestedMode::Streaming, framing)) => Some(framing),
            _ => (streams && !self.refused.contains(&Framing::Sse)).then_some(Framing::Sse),
        }
    }
}
