//! One call of one back-end, while it is open.

use ir::event::FinishReason;
use ir::{Error, Request, Usage};

use crate::fleet::{Lease, Timeouts};
use crate::route::Candidate;
use crate::run::record::{AttemptError, AttemptRecord, Outcome, Role};

/// How many bytes of text make a token, roughly: for estimates only, which are marked as such.
const BYTES_PER_TOKEN: usize = 4;

#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) number: u32,
    pub(super) lease: Lease,
    pub(super) role: Role,
    pub(super) reason: Option<String>,
    pub(super) started_ms: u64,
    pub(super) first_token_ms: Option<u64>,
    /// The model that says it answers.
    pub(super) model: Option<String>,
    /// The text so far, word for word.
    pub(super) reply: String,
    pub(super) usage: Option<Usage>,
    pub(super) finish: Option<FinishReason>,
    /// When it last said anything; `None` before it has.
    pub(super) heard_ms: Option<u64>,
}

impl Attempt {
    pub(super) fn new(number: u32, lease: Lease, role: Role, reason: Option<String>, now_ms: u64) -> Self {
        Self {
            number,
            lease,
            role,
            reason,
            started_ms: now_ms,
            first_token_ms: None,
            model: None,
            reply: String::new(),
            usage: None,
            finish: None,
            heard_ms: None,
        }
    }

    /// When its silence, or its talking, has lasted too long.
    pub(super) fn patience_ms(&self, timeouts: &Timeouts) -> u64 {
        let silence = match self.heard_ms {
            None => self.started_ms + timeouts.first_byte_ms,
            Some(heard_ms) => heard_ms + timeouts.idle_ms,
        };
        silence.min(self.started_ms + timeouts.total_ms)
    }

    pub(super) fn record(
        &self,
        candidate: &Candidate,
        request: &Request,
        outcome: Outcome,
        error: Option<&Error>,
        now_ms: u64,
    ) -> AttemptRecord {
        let won = outcome == Outcome::Won;
        // A call that was refused outright has used nothing that anyone would bill.
        let guess = match outcome {
            Outcome::Won => false,
            Outcome::Failed => self.first_token_ms.is_some(),
            Outcome::Cancelled | Outcome::HedgeLost => true,
        };
        AttemptRecord {
            step: None,
            number: self.number,
            backend: candidate.name.clone(),
            kind: candidate.kind.clone(),
            key: candidate.key,
            model: self.model.clone().or_else(|| candidate.model.clone()),
            role: self.role,
            reason: self.reason.clone(),
            started_ms: self.started_ms,
            latency_ms: now_ms - self.started_ms,
            first_token_ms: self.first_token_ms.map(|at_ms| at_ms - self.started_ms),
            usage: self.usage.clone().filter(|_| won),
            estimate: guess.then(|| self.estimate(request)),
            outcome,
            error: error.map(AttemptError::from),
        }
    }

    fn estimate(&self, request: &Request) -> Usage {
        let said = self.usage.as_ref();
        let asked: usize = request
            .as_chat()
            .into_iter()
            .flat_map(|chat| &chat.messages)
            .map(|message| message.joined_text().len())
            .sum();
        Usage {
            input_tokens: said
                .and_then(|usage| usage.input_tokens)
                .or_else(|| Some(tokens(asked))),
            output_tokens: Some(tokens(self.reply.len())),
            estimated: true,
            ..Usage::default()
        }
    }
}

fn tokens(bytes: usize) -> u64 {
    bytes.div_ceil(BYTES_PER_TOKEN) as u64
}
