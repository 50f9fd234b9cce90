//! Encodes events in the dialect of a client, as its vendor would: one id, a start before any content, usage
//! only if requested, and exactly one end, successful or an error.

use ir::adaptation::{Component, Ledger};
use ir::event::Warning;
use ir::{ChatResponse, Dialect, Error, ErrorKind, Event, Ext, Phase, RunId, Usage};
use serde_json::{Map, Value, json};
use wire::Encoder;

use crate::limits;

/// Id, model and extension data of a response.
#[derive(Clone, Debug)]
pub(super) struct ResponseMeta {
    pub(super) dialect: Dialect,
    pub(super) run: RunId,
    /// The requested model; the name reported by the back-end may differ.
    pub(super) model: String,
    /// Unix time in seconds.
    pub(super) created: u64,
    pub(super) shows_usage: bool,
    /// The number of requested choices, if more than one.
    pub(super) requested_choices: Option<u64>,
    /// Request fields that the response repeats.
    pub(super) echo: Map<String, Value>,
    pub(super) warnings: Vec<Warning>,
}

impl ResponseMeta {
    /// The run id with the prefix of the vendor.
    fn id(&self) -> String {
        let prefix = match self.dialect {
            Dialect::Anthropic => "msg_",
            Dialect::OpenaiResponses => "resp_",
            _ => "chatcmpl-",
        };
        let run = self.run.to_string();
        format!("{prefix}{}", run.strip_prefix("sess_").unwrap_or(&run))
    }

    fn started(&self, model: Option<String>, created: Option<u64>) -> Event {
        let model = model.filter(|model| !model.is_empty());
        Event::Started {
            id: Some(self.id()),
            model: Some(model.unwrap_or_else(|| self.model.clone())),
            created: self.created_at(created),
        }
    }

    /// Anthropic has no field for the time.
    fn created_at(&self, reported: Option<u64>) -> Option<u64> {
        let at = reported.filter(|at| *at > 0).unwrap_or(self.created);
        (self.dialect != Dialect::Anthropic).then_some(at)
    }

    /// Some clients require numbers, so unknown counts are sent as 0. Accounting uses the reported values.
    fn usage_with_defaults(&self, reported: Option<Usage>) -> Option<Usage> {
        let known = reported.filter(is_known);
        if self.dialect == Dialect::OpenaiChat {
            return known;
        }
        let mut usage = known.unwrap_or_default();
        usage.input_tokens.get_or_insert(0);
        usage.output_tokens.get_or_insert(0);
        if self.dialect == Dialect::OpenaiResponses {
            usage.cache_read_tokens.get_or_insert(0);
            usage.reasoning_tokens.get_or_insert(0);
        }
        Some(usage)
    }

    /// Completes a response with id, model, usage and extension data.
    pub(super) fn complete(&mut self, response: &mut ChatResponse) {
        response.id = Some(self.id());
        let model = response.model.take().filter(|model| !model.is_empty());
        response.model = Some(model.unwrap_or_else(|| self.model.clone()));
        response.created = self.created_at(response.created);
        response.usage = self.usage_with_defaults(response.usage.take());
        self.warnings.append(&mut response.warnings);
        if response.ext.value(self.dialect, "more_choices").is_none() {
            self.warn_single_choice();
        }
        for (key, value) in std::mem::take(&mut self.echo) {
            response.ext.set(self.dialect, &key, value);
        }
        self.write_warnings(&mut response.ext);
    }

    /// Adds a warning if several choices were requested.
    fn warn_single_choice(&mut self) {
        if let Some(asked) = self.requested_choices.take() {
            let message = format!("/n: {asked} choices requested, one returned");
            self.warnings.insert(0, Warning::new("adapted", message));
        }
    }

    fn write_warnings(&mut self, ext: &mut Ext) {
        if self.warnings.is_empty() {
            return;
        }
        self.warnings.truncate(limits::WARNINGS_MAX);
        let warnings = std::mem::take(&mut self.warnings);
        let mut beside = ext.remove(self.dialect, "cogn").unwrap_or_else(|| json!({}));
        beside["warnings"] = serde_json::to_value(warnings).unwrap_or_default();
        ext.set(self.dialect, "cogn", beside);
    }
}

/// Usage without input and output counts is unknown.
fn is_known(usage: &Usage) -> bool {
    usage.input_tokens.is_some() || usage.output_tokens.is_some()
}

#[derive(Debug)]
pub(super) struct ResponseEncoder {
    meta: ResponseMeta,
    encoder: Option<Encoder>,
    state: State,
    /// The extension `cogn`.
    extension: Ext,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    NotStarted,
    Started,
    /// A finish event was encoded; only usage may follow.
    Finished,
    Ended,
}

impl ResponseEncoder {
    pub(super) fn new(meta: ResponseMeta) -> Self {
        Self {
            encoder: Encoder::new(meta.dialect),
            meta,
            state: State::NotStarted,
            extension: Ext::default(),
        }
    }

    /// Replays events that were already sent as raw bytes: updates the encoder without output.
    pub(super) fn replay(&mut self, events: &[Event]) {
        let mut discarded = Vec::new();
        for event in events {
            self.push(event, &mut discarded);
        }
        self.state = State::Started;
    }

    /// Encodes one event.
    pub(super) fn encode(&mut self, event: Event, out: &mut Vec<u8>) {
        if self.state == State::Ended {
            return;
        }
        match event {
            Event::Started { model, created, .. } if self.state == State::NotStarted => {
                self.begin(model, created, out);
            }
            Event::Started { .. } => {}
            Event::Warning { warning } => self.note(warning),
            Event::Usage { usage } if !self.meta.shows_usage || !is_known(&usage) => {}
            Event::Meta { mut ext } => {
                if let Some(beside) = ext.remove(self.meta.dialect, "cogn") {
                    self.extension.set(self.meta.dialect, "cogn", beside);
                }
                if !ext.is_empty() {
                    self.push(&Event::Meta { ext }, out);
                }
            }
            Event::Error { error } => {
                self.push(&Event::Error { error }, out);
                self.state = State::Ended;
            }
            event => {
                if self.state == State::NotStarted {
                    self.begin(None, None, out);
                }
                if matches!(event, Event::Finish { .. }) {
                    self.before_finish(out);
                }
                self.push(&event, out);
            }
        }
    }

    /// Encodes the end of the stream: successful after a finish event, otherwise an error.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) {
        match self.state {
            State::Ended => {}
            State::Finished => {
                if let Some(encoder) = &mut self.encoder {
                    encoder.finish(out);
                }
            }
            State::NotStarted | State::Started => {
                let message = "the response ended early";
                let error = Error::new(ErrorKind::Network, Phase::MidStream, message);
                self.encode(Event::Error { error }, out);
            }
        }
        self.state = State::Ended;
    }

    fn begin(&mut self, model: Option<String>, created: Option<u64>, out: &mut Vec<u8>) {
        self.state = State::Started;
        let echo = std::mem::take(&mut self.meta.echo);
        if !echo.is_empty() {
            let ext = Ext::of(self.meta.dialect, echo);
            self.push(&Event::Meta { ext }, out);
        }
        let started = self.meta.started(model, created);
        self.push(&started, out);
        if let Some(usage) = self.meta.usage_with_defaults(None) {
            self.push(&Event::Usage { usage }, out);
        }
    }

    /// Writes the extension before the finish event: some dialects have no field after it.
    fn before_finish(&mut self, out: &mut Vec<u8>) {
        self.state = State::Finished;
        let mut ext = std::mem::take(&mut self.extension);
        self.meta.warn_single_choice();
        self.meta.write_warnings(&mut ext);
        if !ext.is_empty() {
            self.push(&Event::Meta { ext }, out);
        }
    }

    fn push(&mut self, event: &Event, out: &mut Vec<u8>) {
        let mut ledger = Ledger::new(Component::Adapter);
        if let Some(encoder) = &mut self.encoder {
            encoder.push(event, out, &mut ledger);
        }
        for loss in ledger.losses() {
            self.note(Warning::new(
                "adapted",
                format!("{}: {}", loss.pointer, loss.reason),
            ));
        }
    }

    fn note(&mut self, warning: Warning) {
        let known = &mut self.meta.warnings;
        if known.len() < limits::WARNINGS_MAX && !known.contains(&warning) {
            known.push(warning);
        }
    }
}

#[cfg(test)]
mod tests {
    use ir::event::{Block, FinishReason, Warning};
    use ir::{Dialect, Error, ErrorKind, Event, Phase, RunId, Usage};
    use serde_json::Map;

    use super::{ResponseEncoder, ResponseMeta};

    const DIALECTS: [Dialect; 3] = [Dialect::OpenaiChat, Dialect::OpenaiResponses, Dialect::Anthropic];

    fn meta(dialect: Dialect) -> ResponseMeta {
        ResponseMeta {
            dialect,
            run: RunId::from_parts(1, 1),
            model: String::from("asked"),
            created: 7,
            shows_usage: false,
            requested_choices: None,
            echo: Map::new(),
            warnings: Vec::new(),
        }
    }

    fn encoded(dialect: Dialect, events: &[Event]) -> String {
        let mut voice = ResponseEncoder::new(meta(dialect));
        let mut out = Vec::new();
        for event in events {
            voice.encode(event.clone(), &mut out);
        }
        voice.finish(&mut out);
        String::from_utf8(out).unwrap()
    }

    fn text() -> Vec<Event> {
        vec![
            Event::BlockStart {
                index: 0,
                block: Block::Text,
            },
            Event::text(0, "hi"),
        ]
    }

    fn is_good_end(text: &str) -> bool {
        ["[DONE]", "message_stop", "response.completed"]
            .iter()
            .any(|mark| text.contains(mark))
    }

    #[test]
    fn starts_stream_before_first_text() {
        for dialect in DIALECTS {
            let mut events = text();
            events.push(Event::Finish {
                reason: FinishReason::Stop,
            });
            let text = encoded(dialect, &events);
            assert!(text.contains("asked"), "{text}");
            assert!(is_good_end(&text), "{text}");
            assert!(text.contains("00000000010000000000000001"), "{text}");
        }
    }

    #[test]
    fn never_ends_successfully_after_error_or_early_end() {
        let error = Event::Error {
            error: Error::new(ErrorKind::Upstream, Phase::MidStream, "gone"),
        };
        for dialect in DIALECTS {
            for last in [None, Some(error.clone())] {
                let mut events = text();
                events.extend(last);
                let text = encoded(dialect, &events);
                assert!(!is_good_end(&text), "{text}");
                assert_eq!(text.matches("\"error\"").count().min(1), 1, "{text}");
            }
        }
    }

    #[test]
    fn sends_usage_only_if_requested() {
        let usage = Usage {
            input_tokens: Some(3),
            output_tokens: Some(4),
            ..Usage::default()
        };
        let mut events = text();
        events.push(Event::Finish {
            reason: FinishReason::Stop,
        });
        events.push(Event::Usage { usage });
        assert!(!encoded(Dialect::OpenaiChat, &events).contains("usage"));
        let mut voice = ResponseEncoder::new(ResponseMeta {
            shows_usage: true,
            ..meta(Dialect::OpenaiChat)
        });
        let mut out = Vec::new();
        events.into_iter().for_each(|event| voice.encode(event, &mut out));
        voice.finish(&mut out);
        assert!(String::from_utf8(out).unwrap().contains("\"prompt_tokens\":3"));
    }

    #[test]
    fn writes_warnings_into_extension() {
        for dialect in DIALECTS {
            let mut events = vec![Event::Warning {
                warning: Warning::new("adapted", "no seed"),
            }];
            events.extend(text());
            events.push(Event::Finish {
                reason: FinishReason::Stop,
            });
            let text = encoded(dialect, &events);
            assert!(
                text.contains(r#""cogn":{"warnings":[{"code":"adapted""#),
                "{text}"
            );
        }
    }
}
