//! Finds the JSON document in a model's reply: it skips a byte order mark, prose or an opening fence before
//! the document and any text after it. A brace in prose (`{like this}`) is tried and rejected. Events are
//! emitted only once a document has certainly begun, which is when its first key is followed by a value; that
//! decision is final.

use memchr::memchr;

use super::{JsonError, JsonErrorKind, JsonEvent, JsonParser};
use crate::limits;

#[derive(Debug, Default)]
pub struct ReplyReader {
    stage: ReplyStage,
    parser: JsonParser,
    /// The text since the brace that is being tried.
    buffer: String,
    candidate: Candidate,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ReplyStage {
    /// Searching for a brace, or trying one.
    #[default]
    Before,
    Inside,
    After,
    Broken(JsonError),
}

/// The beginning of a candidate object that may be rejected.
#[derive(Debug, Default)]
struct Candidate {
    key: Option<String>,
    accepted: bool,
}

/// The result of trying a brace.
enum CandidateOutcome {
    Open,
    Accepted,
    Rejected,
}

impl ReplyReader {
    pub fn new() -> Self {
        Self::default()
    }

    /// Parses the next piece of the reply.
    pub fn push_str(&mut self, text: &str, sink: &mut impl FnMut(JsonEvent<'_>)) {
        match self.stage {
            ReplyStage::After | ReplyStage::Broken(_) => {}
            ReplyStage::Inside => {
                let result = self.parser.push_str(text, sink);
                self.update_stage(result);
            }
            ReplyStage::Before if self.buffer.is_empty() => self.search(text, sink),
            ReplyStage::Before => {
                let trial = self.attempt(text, sink);
                let mut buffer = std::mem::take(&mut self.buffer);
                match trial {
                    CandidateOutcome::Accepted => {}
                    CandidateOutcome::Open if buffer.len() + text.len() <= limits::LEAD_BYTES_MAX => {
                        buffer.push_str(text);
                        self.buffer = buffer;
                    }
                    CandidateOutcome::Open | CandidateOutcome::Rejected => {
                        buffer.push_str(text);
                        self.search(buffer.get(1..).unwrap_or_default(), sink);
                    }
                }
            }
        }
    }

    /// Whether the document is complete.
    pub fn is_done(&self) -> bool {
        self.stage == ReplyStage::After
    }

    /// The syntax error in a document that had certainly begun.
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
            self.candidate = Candidate::default();
            match self.attempt(text, sink) {
                CandidateOutcome::Accepted => return,
                CandidateOutcome::Open if text.len() <= limits::LEAD_BYTES_MAX => {
                    self.buffer = String::from(text);
                    return;
                }
                CandidateOutcome::Open | CandidateOutcome::Rejected => {
                    text = text.get(1..).unwrap_or_default();
                }
            }
        }
    }

    fn attempt(&mut self, text: &str, sink: &mut impl FnMut(JsonEvent<'_>)) -> CandidateOutcome {
        let candidate = &mut self.candidate;
        let result = self
            .parser
            .push_str(text, &mut |event| match (&candidate.key, event) {
                (_, event) if candidate.accepted => sink(event),
                (None, JsonEvent::Key(key)) => candidate.key = Some(String::from(key)),
                // The brace itself, or the end of an empty object.
                (None, _) => {}
                (Some(key), event) => {
                    sink(JsonEvent::ObjectStart);
                    sink(JsonEvent::Key(key));
                    sink(event);
                    candidate.accepted = true;
                }
            });
        if candidate.accepted {
            self.update_stage(result);
            CandidateOutcome::Accepted
        } else if result.is_err() || self.parser.is_done() {
            // An empty object is rejected; a later object may have content.
            CandidateOutcome::Rejected
        } else {
            CandidateOutcome::Open
        }
    }

    fn update_stage(&mut self, result: Result<(), JsonError>) {
        self.stage = match result {
            Ok(()) if self.parser.is_done() => ReplyStage::After,
            Ok(()) => ReplyStage::Inside,
            Err(error) if error.kind == JsonErrorKind::TrailingText => ReplyStage::After,
            Err(error) => ReplyStage::Broken(error),
        };
    }
}
