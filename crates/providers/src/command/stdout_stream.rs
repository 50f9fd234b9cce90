//! A program that chats: what it prints is shown as it comes, character by character and never half of one.
//! White space at the end is not part of the answer, and a program that fails ends it with an error.

use std::sync::Arc;

use engine::port::{Backend, EventStream};
use futures::{StreamExt, stream};
use ir::event::{Block, Warning};
use ir::{Error, Event, FinishReason, Phase, Usage};

use super::invocation::Invocation;
use super::options::CommandOptions;
use super::output::{text, value};
use super::upstream::{ProcessPermit, gather, streams};

#[derive(Debug)]
pub(super) struct StdoutStream {
    options: Arc<CommandOptions>,
    asked: Invocation,
    _turn: ProcessPermit,
    model: Option<String>,
    stage: OutputStage,
    /// Bytes that are no character yet, or may turn out to be the end.
    held: Vec<u8>,
}

#[derive(Debug)]
enum OutputStage {
    Begun,
    Open,
    Ended,
}

impl StdoutStream {
    pub(super) fn new(options: Arc<CommandOptions>, asked: Invocation, turn: ProcessPermit, backend: &Backend) -> Self {
        Self {
            model: asked.values.model.clone().or_else(|| backend.model.clone()),
            options,
            asked,
            _turn: turn,
            stage: OutputStage::Begun,
            held: Vec::new(),
        }
    }

    pub(super) fn events(self) -> EventStream {
        stream::unfold(self, |mut speaking| async move {
            let events = speaking.next().await?;
            Some((stream::iter(events), speaking))
        })
        .flatten()
        .boxed()
    }

    async fn next(&mut self) -> Option<Vec<Event>> {
        match self.stage {
            OutputStage::Begun => {
                self.stage = OutputStage::Open;
                Some(self.begin())
            }
            OutputStage::Open => Some(self.go_on().await.unwrap_or_else(|error| {
                self.stage = OutputStage::Ended;
                vec![Event::Error { error }]
            })),
            OutputStage::Ended => None,
        }
    }

    fn begin(&mut self) -> Vec<Event> {
        let adaptations = std::mem::take(&mut self.asked.adaptations);
        let warnings = adaptations.iter().map(|adaptation| Event::Warning {
            warning: Warning::new(
                "adapted",
                format!("{}: {}", adaptation.pointer, adaptation.reason),
            ),
        });
        let begun = [
            Event::Started {
                id: None,
                model: self.model.clone(),
                created: None,
            },
            Event::BlockStart {
                index: 0,
                block: Block::Text,
            },
        ];
        warnings.chain(begun).collect()
    }

    async fn go_on(&mut self) -> Result<Vec<Event>, Error> {
        if !streams(&self.asked, &self.options) {
            let bytes = gather(&mut self.asked, &self.options, Vec::new()).await?;
            let said = value(&bytes, &self.options).and_then(text).map_err(|what| {
                let message = format!("back-end {} {what}", self.options.name);
                Error::invalid_response(Phase::MidStream, message)
            })?;
            return Ok(self.end(said));
        }
        let Some(piece) = self.asked.running.read().await? else {
            return match self.held.trim_ascii().is_empty() {
                true => Ok(self.end(String::new())),
                false => Err(self.no_text()),
            };
        };
        self.held.extend_from_slice(&piece);
        let said = self.whole_characters()?;
        Ok(match said.is_empty() {
            true => Vec::new(),
            false => vec![Event::text(0, said)],
        })
    }

    /// What is text for certain. The rest of a character and white space wait for what follows.
    fn whole_characters(&mut self) -> Result<String, Error> {
        let valid = match std::str::from_utf8(&self.held) {
            Ok(all) => all,
            Err(error) if error.error_len().is_some() => return Err(self.no_text()),
            Err(error) => {
                let valid = self.held.get(..error.valid_up_to()).unwrap_or_default();
                std::str::from_utf8(valid).unwrap_or_default()
            }
        };
        let said = String::from(valid.trim_end());
        self.held.drain(..said.len());
        Ok(said)
    }

    fn no_text(&self) -> Error {
        let message = format!("back-end {} gave a text that is not UTF-8", self.options.name);
        Error::invalid_response(Phase::MidStream, message)
    }

    fn end(&mut self, said: String) -> Vec<Event> {
        self.stage = OutputStage::Ended;
        let text = (!said.is_empty()).then(|| Event::text(0, said));
        let end = [
            Event::BlockEnd { index: 0 },
            // A program counts no tokens, and unknown is not zero.
            Event::Usage {
                usage: Usage::default(),
            },
            Event::Finish {
                reason: FinishReason::Stop,
            },
        ];
        text.into_iter().chain(end).collect()
    }
}
