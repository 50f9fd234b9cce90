//! Finds the document in what a model says: after a byte order mark, prose or the opening of a fence,
//! and before whatever follows. A brace in prose (`{like this}`) is tried and given up. Nothing is
//! handed on before a document has surely begun, which is when its first key is followed by a value;
//! from then on there is no way back.

use memchr::memchr;

use super::{JsonError, JsonErrorKind, JsonEvent, JsonParser};
use crate::limits;

#[derive(Debug, Default)]
pub struct ReplyReader {
    stage: ReplyStage,
    parser: JsonParser,
    /// The text since the brace that is being tried.
    held: String,
    lead: Candidate,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ReplyStage {
    /// Looking for a brace, or trying one.
    #[default]
    Before,
    Inside,
    After,
    Broken(JsonError),
}

/// What was read of an object that may turn out not to be one.
#[derive(Debug, Default)]
struct Candidate {
    key: Option<String>,
    sure: bool,
}

/// What came of trying a brace.
enum CandidateOutcome {
    Open,
    Sure,
    GivenUp,
}

impl ReplyReader {
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next piece of the reply.
    pub fn push_str(&mut self, text: &str, sink: &mut impl FnMut(JsonEvent<'_>)) {
        match self.stage {
            ReplyStage::After | ReplyStage::Broken(_) => {}
            ReplyStage::Inside => {
                let result = self.parser.push_str(text, sink);
                self.settle(result);
            }
            ReplyStage::Before if self.held.is_empty() => self.search(text, sink),
            ReplyStage::Before => {
                let trial = self.attempt(text, sink);
                let mut held = std::mem::take(&mut self.held);
                match trial {
                    CandidateOutcome::Sure => {}
                    CandidateOutcome::Open if held.len() + text.len() <= limits::LEAD_BYTES_MAX => {
                        held.push_str(text);
                        self.held = held;
                    }
                    CandidateOutcome::Open | CandidateOutcome::GivenUp => {
                        held.push_str(text);
                        self.search(held.get(1..).unwrap_or_default(), sink);
                    }
                }
            }
        }
    }

    /// Whether the document is complete.
    pub fn is_done(&self) -> bool {
        self.stage == ReplyStage::After
    }

    /// What broke the document after it had surely begun.
    pub fn error(&self) -> Option<JsonError> {
        match self.stage {
            ReplyStage::Broken(error) => Some(error),
            ReplyStage::Before | ReplyStage::Inside | ReplyStage::After => None,
        }
    }

    fn search(&mut self, mut text: &str, sink: &mut impl FnMut(JsonEvent<'_>)) {
        while let Some(at) = memchr(b'{', text.as_bytes()) {
            text = text.get(at..).unwrap_or_default();
            self.parser = JsonParser::new();
            self.lead = Candidate::default();
            match self.attempt(text, sink) {
                CandidateOutcome::Sure => return,
                CandidateOutcome::Open if text.len() <= limits::LEAD_BYTES_MAX => {
                    self.held = String::from(text);
                    return;
                }
                CandidateOutcome::Open | CandidateOutcome::GivenUp => text = text.get(1..).unwrap_or_default(),
            }
        }
    }

    fn attempt(&mut self, text: &str, sink: &mut impl FnMut(JsonEvent<'_>)) -> CandidateOutcome {
        let lead = &mut self.lead;
        let result = self.parser.push_str(text, &mut |event| match (&lead.key, event) {
            (_, event) if lead.sure => sink(event),
            (None, JsonEvent::Key(key)) => lead.key = Some(String::from(key)),
            // The brace itself, or the end of an empty object.
            (None, _) => {}
            (Some(key), event) => {
                sink(JsonEvent::ObjectStart);
                sink(JsonEvent::Key(key));
                sink(event);
                lead.sure = true;
            }
        });
        if lead.sure {
            self.settle(result);
            CandidateOutcome::Sure
        } else if result.is_err() || self.parser.is_done() {
            // An empty object says nothing; a fuller one may follow it.
            CandidateOutcome::GivenUp
        } else {
            CandidateOutcome::Open
        }
    }

    fn settle(&mut self, result: Result<(), JsonError>) {
        self.stage = match result {
            Ok(()) if self.parser.is_done() => ReplyStage::After,
            Ok(()) => ReplyStage::Inside,
            Err(error) if error.kind == JsonErrorKind::TrailingText => ReplyStage::After,
            Err(error) => ReplyStage::Broken(error),
        };
    }
}
