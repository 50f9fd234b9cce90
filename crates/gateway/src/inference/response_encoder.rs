//! Events in the words of a dialect, as its clients expect to hear them from their vendor's own server: under
//! one id, begun before anything is said, with as much about usage as was asked for, and ended well or with
//! an error, never with both.

use ir::adaptation::{Ledger, Component};
use ir::event::Warning;
use ir::{ChatResponse, Dialect, Error, ErrorKind, Event, Ext, Phase, RunId, Usage};
use serde_json::{Map, Value, json};
use wire::Encoder;

use crate::limits;

/// What an answer is called and what is said beside it.
#[derive(Clone, Debug)]
pub(super) struct ResponseMeta {
    pub(super) dialect: Dialect,
    pub(super) run: RunId,
    /// The model that was asked for; the one that answers may have another name.
    pub(super) model: String,
    /// Unix time in seconds.
    pub(super) created: u64,
    pub(super) shows_usage: bool,
    /// How many answers were asked for, where it is more than one.
    pub(super) requested_choices: Option<u64>,
    /// What the answer repeats of the question.
    pub(super) echo: Map<String, Value>,
    pub(super) warnings: Vec<Warning>,
}

impl ResponseMeta {
    /// The run under the name that the vendor's clients expect.
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

    /// One dialect has no place for the time.
    fn created_at(&self, told: Option<u64>) -> Option<u64> {
        let at = told.filter(|at| *at > 0).unwrap_or(self.created);
        (self.dialect != Dialect::Anthropic).then_some(at)
    }

    /// Some clients insist on numbers, and read 0 where the back-end tells none. The accounts keep what it
    /// told.
    fn usage_with_defaults(&self, told: Option<Usage>) -> Option<Usage> {
        let told = told.filter(is_known);
        if self.dialect == Dialect::OpenaiChat {
            return told;
        }
        let mut usage = told.unwrap_or_default();
        usage.input_tokens.get_or_insert(0);
        usage.output_tokens.get_or_insert(0);
        if self.dialect == Dialect::OpenaiResponses {
            usage.cache_read_tokens.get_or_insert(0);
            usage.reasoning_tokens.get_or_insert(0);
        }
        Some(usage)
    }

    /// A whole answer under the same name, with the same things said beside it.
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

    /// One answer in place of several says so.
    fn warn_single_choice(&mut self) {
        if let Some(asked) = self.requested_choices.take() {
            let message = format!("/n: {asked} answers were asked for, and one is given");
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

/// An account that knows neither side says nothing.
fn is_known(usage: &Usage) -> bool {
    usage.input_tokens.is_some() || usage.output_tokens.is_some()
}

#[derive(Debug)]
pub(super) struct ResponseEncoder {
    manner: ResponseMeta,
    encoder: Option<Encoder>,
    state: State,
    /// What stands beside the answer, under `cogn`.
    extension: Ext,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    NotStarted,
    Started,
    /// The model has said its last word; figures may follow.
    Finished,
    Ended,
}

impl ResponseEncoder {
    pub(super) fn new(manner: ResponseMeta) -> Self {
        Self {
            encoder: Encoder::new(manner.dialect),
            manner,
            state: State::NotStarted,
            extension: Ext::default(),
        }
    }

    /// What the caller has heard so far from somebody else: taken in, not said again.
    pub(super) fn replay(&mut self, events: &[Event]) {
        let mut said = Vec::new();
        for event in events {
            self.push(event, &mut said);
        }
        self.state = State::Started;
    }

    /// Says one event.
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
            Event::Usage { usage } if !self.manner.shows_usage || !is_known(&usage) => {}
            Event::Meta { mut ext } => {
                if let Some(beside) = ext.remove(self.manner.dialect, "cogn") {
                    self.extension.set(self.manner.dialect, "cogn", beside);
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

    /// No more events come: the mark of a good end, or an error if it was none.
    pub(super) fn before_finish(&mut self, out: &mut Vec<u8>) {
        match self.state {
            State::Ended => {}
            State::Finished => {
                if let Some(encoder) = &mut self.encoder {
                    encoder.finish(out);
                }
            }
            State::NotStarted | State::Started => {
                let message = "the answer broke off before its end";
                let error = Error::new(ErrorKind::Network, Phase::MidStream, message);
                self.encode(Event::Error { error }, out);
            }
        }
        self.state = State::Ended;
    }

    fn begin(&mut self, model: Option<String>, created: Option<u64>, out: &mut Vec<u8>) {
        self.state = State::Started;
        let echo = std::mem::take(&mut self.manner.echo);
        if !echo.is_empty() {
            let ext = Ext::of(self.manner.dialect, echo);
            self.push(&Event::Meta { ext }, out);
        }
        let started = self.manner.started(model, created);
        self.push(&started, out);
        if let Some(usage) = self.manner.usage_with_defaults(None) {
            self.push(&Event::Usage { usage }, out);
        }
    }

    /// What is said beside the answer is said before its last word: some dialects have no place after it.
    fn before_finish(&mut self, out: &mut Vec<u8>) {
        self.state = State::Finished;
        let mut ext = std::mem::take(&mut self.extension);
        self.manner.warn_single_choice();
        self.manner.write_warnings(&mut ext);
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
        let known = &mut self.manner.warnings;
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

    use super::{ResponseMeta, ResponseEncoder};

    const DIALECTS: [Dialect; 3] = [Dialect::OpenaiChat, Dialect::OpenaiResponses, Dialect::Anthropic];

    fn manner(dialect: Dialect) -> ResponseMeta {
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

    fn said(dialect: Dialect, events: &[Event]) -> String {
        let mut voice = ResponseEncoder::new(manner(dialect));
        let mut out = Vec::new();
        for event in events {
            voice.encode(event.clone(), &mut out);
        }
        voice.before_finish(&mut out);
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
    fn an_answer_that_begins_with_text_is_still_begun() {
        for dialect in DIALECTS {
            let mut events = text();
            events.push(Event::Finish {
                reason: FinishReason::Stop,
            });
            let text = said(dialect, &events);
            assert!(text.contains("asked"), "{text}");
            assert!(is_good_end(&text), "{text}");
            assert!(text.contains("00000000010000000000000001"), "{text}");
        }
    }

    #[test]
    fn nothing_good_follows_an_error_or_a_cut() {
        let error = Event::Error {
            error: Error::new(ErrorKind::Upstream, Phase::MidStream, "gone"),
        };
        for dialect in DIALECTS {
            for last in [None, Some(error.clone())] {
                let mut events = text();
                events.extend(last);
                let text = said(dialect, &events);
                assert!(!is_good_end(&text), "{text}");
                assert_eq!(text.matches("\"error\"").count().min(1), 1, "{text}");
            }
        }
    }

    #[test]
    fn usage_is_shown_where_it_was_asked_for() {
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
        assert!(!said(Dialect::OpenaiChat, &events).contains("usage"));
        let mut voice = ResponseEncoder::new(ResponseMeta {
            shows_usage: true,
            ..manner(Dialect::OpenaiChat)
        });
        let mut out = Vec::new();
        events.into_iter().for_each(|event| voice.encode(event, &mut out));
        voice.before_finish(&mut out);
        assert!(String::from_utf8(out).unwrap().contains("\"prompt_tokens\":3"));
    }

    #[test]
    fn warnings_stand_beside_the_answer() {
        for dialect in DIALECTS {
            let mut events = vec![Event::Warning {
                warning: Warning::new("adapted", "no seed"),
            }];
            events.extend(text());
            events.push(Event::Finish {
                reason: FinishReason::Stop,
            });
            let text = said(dialect, &events);
            assert!(
                text.contains(r#""cogn":{"warnings":[{"code":"adapted""#),
                "{text}"
            );
        }
    }
}
