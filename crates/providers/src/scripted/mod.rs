//! A back-end with scripted responses: for users' tests, for this project's tests, and for replaying
//! recordings. It can simulate the failures of real back-ends: error status, delay, and truncation at any
//! byte.

mod script;
#[cfg(test)]
mod tests;

use std::cell::LazyCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use engine::port::{Backend, EventStream, EventUpstream};
use futures::{StreamExt, stream};
use ir::error::Phase;
use ir::event::{Block, Delta, FinishReason};
use ir::{Error, ErrorKind, Event, Part, PartBody, Request, Usage};

pub use script::{Exchange, Recorded, RecordedBackend, Script, ScriptError};

use crate::recording::Fingerprint;

/// A script with its name and the use count of each exchange.
#[derive(Debug)]
pub struct ScriptedUpstream {
    backend: Backend,
    exchanges: Vec<(Exchange, AtomicU64)>,
}

impl ScriptedUpstream {
    pub fn new(name: &str, script: Script) -> Self {
        let backend = Backend {
            name: String::from(name),
            kind: String::from("scripted"),
            model: None,
        };
        Self::named(backend, script)
    }

    /// A script labelled as another back-end.
    pub fn named(backend: Backend, script: Script) -> Self {
        let exchanges = script.0.into_iter().map(|exchange| (exchange, AtomicU64::new(0)));
        Self {
            backend,
            exchanges: exchanges.collect(),
        }
    }

    /// The first matching exchange with uses left.
    pub fn choose(&self, request: &Request) -> Option<&Exchange> {
        let text = text_of(request);
        let fingerprint = LazyCell::new(|| Fingerprint::of(request));
        let fitting = self.exchanges.iter().find(|(exchange, used)| {
            let fits = exchange.pattern.as_deref().is_none_or(|part| text.contains(part));
            let recorded = exchange.request.as_ref();
            let same = recorded.is_none_or(|recorded| recorded.sha256 == fingerprint.sha256);
            fits && same && claim(used, exchange.times)
        });
        fitting.map(|(exchange, _)| exchange)
    }
}

impl EventUpstream for ScriptedUpstream {
    fn backend(&self) -> &Backend {
        &self.backend
    }

    fn stream(&self, request: Arc<Request>) -> EventStream {
        self.try_open(&request).unwrap_or_else(|| {
            let message = format!("the script {} has no answer for this request", self.backend.name);
            let error = Error::new(ErrorKind::Upstream, Phase::BeforeFirstByte, message);
            stream::iter([Event::Error { error }]).boxed()
        })
    }
}

impl ScriptedUpstream {
    /// The response, if the script has one.
    pub(crate) fn try_open(&self, request: &Request) -> Option<EventStream> {
        let exchange = self.choose(request)?;
        let events = stream_exchange(exchange, &self.backend);
        Some(match exchange.delay_ms {
            0 => stream::iter(events).boxed(),
            delay_ms => {
                let pause = Duration::from_millis(delay_ms);
                let paced = stream::iter(events).then(move |event| async move {
                    tokio::time::sleep(pause).await;
                    event
                });
                paced.boxed()
            }
        })
    }
}

/// Consumes one use, unless all are consumed. Concurrent requests never get the same use.
fn claim(used: &AtomicU64, times: Option<u64>) -> bool {
    let more = |count: u64| times.is_none_or(|times| count < times).then_some(count + 1);
    used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
        .is_ok()
}

/// The events of an exchange, without delays.
pub fn stream_exchange(exchange: &Exchange, backend: &Backend) -> Vec<Event> {
    if let Some(code) = exchange.status {
        let mut error = Error::new(
            ErrorKind::from_status(code),
            Phase::BeforeFirstByte,
            format!("{} answered with status {code}", backend.name),
        );
        error.status = Some(code);
        error.retry_after_ms = exchange.retry_after_ms();
        return vec![Event::Error { error }];
    }
    if let Some(events) = &exchange.events {
        return events.clone();
    }
    let reply = exchange.reply_text();
    let cut = exchange.cut_after_bytes;
    let sent = cut.map_or(reply.as_str(), |bytes| prefix(&reply, bytes));
    let mut events = vec![
        Event::Started {
            id: None,
            model: backend.model.clone(),
            created: None,
        },
        Event::BlockStart {
            index: 0,
            block: Block::Text,
        },
    ];
    events.extend(pieces(sent, exchange.chunk_bytes).map(|text| Event::BlockDelta {
        index: 0,
        delta: Delta::Text {
            text: String::from(text),
        },
    }));
    if cut.is_none() {
        events.push(Event::BlockEnd { index: 0 });
        // A script has no token counts; unknown is not zero.
        events.push(Event::Usage {
            usage: Usage::default(),
        });
        events.push(Event::Finish {
            reason: FinishReason::Stop,
        });
    }
    events
}

/// At most this many bytes. A character that would be split is omitted: its bytes would have arrived, but
/// they do not form text.
fn prefix(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}

/// The text in pieces of about `bytes` bytes, at least one character each.
fn pieces(mut text: &str, bytes: Option<usize>) -> impl Iterator<Item = &str> {
    let bytes = bytes.unwrap_or(text.len()).max(1);
    std::iter::from_fn(move || {
        let first = text.chars().next()?.len_utf8();
        let border = text.floor_char_boundary(bytes).max(first);
        let (piece, rest) = text.split_at(border);
        text = rest;
        Some(piece)
    })
}

fn text_of(request: &Request) -> String {
    let mut text = String::new();
    let messages = request.as_chat().into_iter().flat_map(|chat| &chat.messages);
    for part in messages.flat_map(|message| &message.parts) {
        // Tool results are part of the matched text.
        let within = match &part.body {
            PartBody::ToolResult(result) => result.content.as_slice(),
            _ => std::slice::from_ref(part),
        };
        for words in within.iter().filter_map(Part::as_text) {
            text.push_str(words);
            text.push('\n');
        }
    }
    text
}
