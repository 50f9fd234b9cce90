//! A recording as a back-end. It answers recorded requests only: any other request is rejected with its
//! differences, and no other back-end is called.

use std::sync::{Arc, Mutex, PoisonError};

use engine::port::{Backend, EventStream, EventUpstream};
use futures::{StreamExt, stream};
use ir::error::Phase;
use ir::{Error, ErrorKind, Event, Request};
use serde_json::Value;
use similar::TextDiff;

use super::fingerprint::Fingerprint;
use crate::limits;
use crate::scripted::{Recorded, Script, ScriptedUpstream};

#[derive(Debug)]
pub struct Replay {
    scripted: ScriptedUpstream,
    recorded: Vec<Recorded>,
    stale: Mutex<Vec<UnmatchedRequest>>,
}

/// A request without a recorded response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnmatchedRequest {
    /// Lines with `-` were recorded, lines with `+` are in the request; empty if there is no recording.
    pub difference: String,
}

impl Replay {
    pub fn new(name: &str, script: Script) -> Self {
        let recorded = script.0.iter().filter_map(|exchange| exchange.request.clone());
        let recorded = recorded.collect();
        // The response is labelled with the recorded back-end.
        let backend = script.0.iter().find_map(|exchange| exchange.backend.clone());
        let scripted = match backend {
            Some(backend) => ScriptedUpstream::named(
                Backend {
                    name: backend.name,
                    kind: backend.kind,
                    model: backend.model,
                },
                script,
            ),
            None => ScriptedUpstream::new(name, script),
        };
        Self {
            scripted,
            recorded,
            stale: Mutex::default(),
        }
    }

    /// The requests without a recorded response, in order of arrival.
    pub fn stale(&self) -> Vec<UnmatchedRequest> {
        let stale = self.stale.lock().unwrap_or_else(PoisonError::into_inner);
        stale.clone()
    }

    fn refuse(&self, request: &Request) -> EventStream {
        let difference = difference(&self.recorded, &Fingerprint::of(request));
        let message = if difference.is_empty() {
            String::from("the recording is stale: it has no answer left for this request")
        } else {
            format!("the recording is stale: the request has changed\n{difference}")
        };
        let mut stale = self.stale.lock().unwrap_or_else(PoisonError::into_inner);
        stale.push(UnmatchedRequest { difference });
        // This kind prevents failover to another back-end.
        let mut error = Error::new(ErrorKind::NoCandidate, Phase::BeforeSend, message);
        error.provider_code = Some(String::from("stale_recording"));
        stream::iter([Event::Error { error }]).boxed()
    }
}

impl EventUpstream for Replay {
    fn backend(&self) -> &Backend {
        self.scripted.backend()
    }

    fn stream(&self, request: Arc<Request>) -> EventStream {
        match self.scripted.try_open(&request) {
            Some(events) => events,
            None => self.refuse(&request),
        }
    }
}

/// The differences to the most similar recorded request.
fn difference(recorded: &[Recorded], now: &Fingerprint) -> String {
    let now = readable(&now.asked);
    let before = recorded
        .iter()
        .take(limits::COMPARED_MAX)
        .map(|recorded| readable(&recorded.asked))
        .max_by(|a, b| {
            let alike = |text: &str| TextDiff::from_lines(text, now.as_str()).ratio();
            alike(a).total_cmp(&alike(b))
        });
    let Some(before) = before else {
        return String::new();
    };
    let whole = TextDiff::from_lines(before.as_str(), now.as_str());
    let text = whole.unified_diff().context_radius(1).to_string();
    let mut lines: Vec<&str> = text.lines().collect();
    if lines.len() > limits::DIFFERENCE_LINES_MAX {
        lines.truncate(limits::DIFFERENCE_LINES_MAX);
        lines.push("...");
    }
    lines.join("\n")
}

/// Formatted line by line, including texts.
fn readable(asked: &Value) -> String {
    serde_saphyr::to_string(asked).unwrap_or_else(|_| format!("{asked:#}"))
}
