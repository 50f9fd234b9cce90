//! One attempt: a call of one back-end, while it is open.

use ir::event::{Delta, FinishReason};
use ir::operation::Operation;
use ir::{Error, Event, Price, Request, Usage};

use crate::fleet::{InFlightGuard, Timeouts};
use crate::route::Candidate;
use crate::run::{AttemptError, AttemptOutcome, AttemptRecord, AttemptRole};

/// Approximate bytes of text per token, for usage that is marked as estimated.
const BYTES_PER_TOKEN: usize = 4;

#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) number: u32,
    pub(crate) guard: InFlightGuard,
    pub(crate) role: AttemptRole,
    pub(crate) reason: Option<String>,
    pub(crate) started_ms: u64,
    pub(crate) first_token_ms: Option<u64>,
    /// The model name that the back-end reports.
    pub(crate) model: Option<String>,
    /// Output bytes of all kinds.
    pub(crate) output_bytes: usize,
    /// Bytes that are buffered and not in `output_bytes` yet.
    pub(crate) buffered_bytes: usize,
    pub(crate) usage: Option<Usage>,
    /// No output has arrived since the last usage event.
    usage_is_current: bool,
    pub(crate) finish: Option<FinishReason>,
    /// Time of the last event; `None` before the first.
    pub(crate) last_event_ms: Option<u64>,
}

impl Attempt {
    pub(super) fn new(
        number: u32,
        guard: InFlightGuard,
        role: AttemptRole,
        reason: Option<String>,
        now_ms: u64,
    ) -> Self {
        Self {
            number,
            guard,
            role,
            reason,
            started_ms: now_ms,
            first_token_ms: None,
            model: None,
            output_bytes: 0,
            buffered_bytes: 0,
            usage: None,
            usage_is_current: false,
            finish: None,
            last_event_ms: None,
        }
    }

    /// Updates the attempt from an event.
    pub(super) fn observe(&mut self, event: &Event) {
        match event {
            Event::Started { model, .. } => self.model.clone_from(model),
            Event::BlockDelta { delta, .. } => {
                self.output_bytes += bytes_of(delta);
                self.usage_is_current = false;
            }
            Event::Usage { usage } => {
                self.usage.get_or_insert_default().update(usage.clone());
                self.usage_is_current = usage.total_tokens().is_some();
            }
            Event::Finish { reason } => self.finish = Some(reason.clone()),
            Event::BlockStart { .. }
            | Event::BlockEnd { .. }
            | Event::Meta { .. }
            | Event::Warning { .. }
            | Event::VendorSpecific { .. }
            | Event::Raw { .. }
            | Event::Error { .. } => {}
        }
    }

    /// Computes the cost from the price, if the back-end reported none.
    pub(super) fn apply_price(&mut self, price: Option<Price>, operation: Operation) {
        let (Some(price), Some(usage)) = (price, &mut self.usage) else {
            return;
        };
        if usage.cost_usd.is_some() {
            return;
        }
        usage.cost_usd = match operation {
            // Embeddings have no output tokens; only input is billed.
            Operation::Embeddings if usage.output_tokens.is_none() => price.of(&Usage {
                output_tokens: Some(0),
                ..usage.clone()
            }),
            _ => price.of(usage),
        };
    }

    /// When the attempt times out: no first byte, idle, or total.
    pub(super) fn deadline_ms(&self, timeouts: &Timeouts) -> u64 {
        let idle_deadline = match self.last_event_ms {
            None => self.started_ms + timeouts.first_byte_ms,
            Some(heard_ms) => heard_ms + timeouts.idle_ms,
        };
        idle_deadline.min(self.started_ms + timeouts.total_ms)
    }

    pub(super) fn record(
        &self,
        candidate: &Candidate,
        request: &Request,
        outcome: AttemptOutcome,
        error: Option<&Error>,
        now_ms: u64,
    ) -> AttemptRecord {
        // Usage reported after the last output counts even if the attempt failed. Usage reported before it is
        // incomplete, as is that of a cancelled attempt: the estimate completes it.
        let usage = match outcome {
            AttemptOutcome::Succeeded => self.usage.clone(),
            AttemptOutcome::Failed if self.usage_is_current => self.usage.clone(),
            AttemptOutcome::Failed => None,
            AttemptOutcome::Cancelled | AttemptOutcome::HedgeLost => None,
        };
        // An attempt that was refused without output and usage is not billed.
        let guess = match outcome {
            AttemptOutcome::Succeeded => false,
            AttemptOutcome::Failed => {
                usage.is_none() && (self.first_token_ms.is_some() || self.usage.is_some())
            }
            AttemptOutcome::Cancelled | AttemptOutcome::HedgeLost => true,
        };
        AttemptRecord {
            step: None,
            number: self.number,
            backend: candidate.name.clone(),
            kind: candidate.kind.clone(),
            key: candidate.key,
            model: self.model_name(candidate, request),
            role: self.role,
            reason: self.reason.clone(),
            started_ms: self.started_ms,
            latency_ms: now_ms - self.started_ms,
            first_token_ms: self.first_token_ms.map(|at_ms| at_ms - self.started_ms),
            usage,
            estimate: guess.then(|| self.estimate(request)),
            outcome,
            error: error.map(AttemptError::from),
        }
    }

    /// The best known model name: as reported, as configured, as requested.
    fn model_name(&self, candidate: &Candidate, request: &Request) -> Option<String> {
        let bound = || candidate.model.clone();
        let asked = || {
            request
                .model()
                .filter(|model| !model.is_empty())
                .map(String::from)
        };
        self.model.clone().or_else(bound).or_else(asked)
    }

    /// The reported usage, with counted tokens in place of unknown ones and of fewer output tokens than counted.
    fn estimate(&self, request: &Request) -> Usage {
        let reported = self.usage.clone().unwrap_or_default();
        let asked: usize = request
            .as_chat()
            .into_iter()
            .flat_map(|chat| &chat.messages)
            .map(|message| message.joined_text().len())
            .sum();
        Usage {
            input_tokens: reported.input_tokens.or_else(|| Some(tokens(asked))),
            output_tokens: reported
                .output_tokens
                .max(Some(tokens(self.output_bytes + self.buffered_bytes))),
            // The cost and the provider's own object belong to the incomplete counts.
            cost_usd: None,
            raw: None,
            estimated: true,
            ..reported
        }
    }
}

fn bytes_of(delta: &Delta) -> usize {
    match delta {
        Delta::Text { text } | Delta::Reasoning { text } => text.len(),
        Delta::ToolArguments { json } => json.len(),
        Delta::Sealed { data } => data.len(),
        Delta::Data { base64 } => base64.len(),
        Delta::Signature { .. } | Delta::Annotation { .. } | Delta::Meta { .. } => 0,
    }
}

fn tokens(bytes: usize) -> u64 {
    bytes.div_ceil(BYTES_PER_TOKEN) as u64
}
