//! Chat by a program: standard output is streamed as it is written, split at character boundaries. Trailing
//! white space is removed, and a failure of the program becomes an error event.

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
    /// Bytes of an incomplete character, or white space that may be trailing.
    held: Vec<u8>,
}

#[derive(Debug)]
enum OutputStage {
    Begun,
    Open,
    Ended,
}

impl StdoutStream {
    pub(super) fn new(
        options: Arc<CommandOptions>,
        asked: Invocation,
        turn: ProcessPermit,
        backend: &Backend,
    ) -> Self {
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
            OutputStage::Open => Some(self.advance().await.unwrap_or_else(|error| {
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

    async fn advance(&mut self) -> Result<Vec<Event>, Error> {
        if !streams(&self.asked, &self.options) {
            let bytes = gather(&mut self.asked, &self.options, Vec::new()).await?;
            let text_piece = value(&bytes, &self.options).and_then(text).map_err(|what| {
                let message = format!("back-end {} {what}", self.options.name);
                Error::invalid_response(Phase::MidStream, message)
            })?;
            return Ok(self.end(text_piece));
        }
        let Some(piece) = self.asked.running.read().await? else {
            return match self.held.trim_ascii().is_empty() {
                true => Ok(self.end(String::new())),
                false => Err(self.no_text()),
            };
        };
        self.held.extend_from_slice(&piece);
        let text_piece = self.whole_characters()?;
        Ok(match text_piece.is_empty() {
            true => Vec::new(),
            false => vec![Event::text(0, text_piece)],
        })
    }

    /// The complete characters. The rest of a character and trailing white space stay buffered.
    fn whole_characters(&mut self) -> Result<String, Error> {
        let valid = match std::str::from_utf8(&self.held) {
            Ok(all) => all,
            Err(error) if error.error_len().is_some() => return Err(self.no_text()),
            Err(error) => {
                let valid = self.held.get(..error.valid_up_to()).unwrap_or_default();
                std::str::from_utf8(valid).unwrap_or_default()
            }
        };
        let text_piece = String::from(valid.trim_end());
        self.held.drain(..text_piece.len());
        Ok(text_piece)
    }

    fn no_text(&self) -> Error {
        let message = format!("back-end {} returned text that is not UTF-8", self.options.name);
        Error::invalid_response(Phase::MidStream, message)
    }

    fn end(&mut self, text_piece: String) -> Vec<Event> {
        self.stage = OutputStage::Ended;
        let text = (!text_piece.is_empty()).then(|| Event::text(0, text_piece));
        let end = [
            Event::BlockEnd { index: 0 },
            // Programs report no token counts; unknown is not zero.
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
