//! The attempts of a run: who is called, whose words count, and what follows when one is lost. This is the
//! one retry loop; the fleet's dispatch says where it leads.

use ir::error::Phase;
use ir::event::{Block, Delta, FinishReason};
use ir::{Error, ErrorKind, Event};

use super::attempt::Attempt;
use super::{Machine, Output, Selection};
use crate::fleet::{Choice, Lease};
use crate::limits;
use crate::route::Policy;
use crate::run::command::Mode;
use crate::run::record::{Outcome, Role};

/// An attempt that failed, as far as the end of the run may have to speak of it.
#[derive(Debug)]
pub(super) struct Loss {
    pub(super) error: Error,
    pub(super) reply: String,
}

impl Machine {
    /// Calls whoever is next, waits for the right time, or ends. `again` says why another answer is wanted.
    pub(super) fn advance(&mut self, again: Option<String>, now_ms: u64, out: &mut Vec<Output>) {
        match self.dispatch.next(now_ms) {
            Choice::Open { lease, returning } => {
                let role = match (&again, &self.loss) {
                    (Some(_), _) => Role::Again,
                    (None, None) => Role::First,
                    (None, Some(_)) if returning => Role::Retry,
                    (None, Some(_)) => Role::Failover,
                };
                let reason = again.or_else(|| self.loss.as_ref().map(|loss| loss.error.message.clone()));
                self.arm_hedge(lease.member(), now_ms);
                self.call(lease, role, reason, now_ms, out);
            }
            Choice::Wait { until_ms } if until_ms < self.deadline_ms() => {
                self.waiting_until = Some(until_ms);
                self.progress("queue", format!("waits for {} ms", until_ms - now_ms), out);
            }
            Choice::Wait { until_ms } => {
                let message = "the back-end takes no more calls in the time that is left";
                let mut error = Error::new(ErrorKind::RateLimited, Phase::BeforeSend, message);
                error.retry_after_ms = Some(until_ms - now_ms);
                self.exhaust(error, out);
            }
            Choice::Nobody(error) => self.exhaust(*error, out),
        }
    }

    /// The same question to whoever gave the last answer, or a new search.
    pub(super) fn ask_again(
        &mut self,
        selection: &Selection,
        member: usize,
        reason: String,
        now_ms: u64,
        out: &mut Vec<Output>,
    ) {
        if *selection == Selection::Same
            && let Some(lease) = self.dispatch.same(member, now_ms)
        {
            return self.call(lease, Role::Again, Some(reason), now_ms, out);
        }
        self.advance(Some(reason), now_ms, out);
    }

    fn call(&mut self, lease: Lease, role: Role, reason: Option<String>, now_ms: u64, out: &mut Vec<Output>) {
        if std::mem::take(&mut self.stale) && self.plan.mode == Mode::Stream {
            self.emit(out, |projector, chunks| projector.restart(chunks));
        }
        self.begun += 1;
        let (attempt, member) = (self.begun, lease.member());
        self.progress("attempt", format!("attempt {attempt}"), out);
        self.open.push(Attempt::new(attempt, lease, role, reason, now_ms));
        let request = self.dispatch.request().clone();
        out.push(Output::Open {
            attempt,
            member,
            request,
        });
    }

    pub(super) fn hear(&mut self, number: u32, event: Event, now_ms: u64, out: &mut Vec<Output>) {
        let fleet_ms = self.dispatch.fleet_ms(now_ms);
        let Some(attempt) = self.open.iter_mut().find(|attempt| attempt.number == number) else {
            return;
        };
        attempt.heard_ms = Some(now_ms);
        let speaks = matches!(event, Event::BlockDelta { .. } | Event::Finish { .. });
        if speaks && attempt.first_token_ms.is_none() {
            attempt.first_token_ms = Some(now_ms);
            attempt.lease.first_token(fleet_ms);
        }
        match event {
            Event::Started { model, .. } => attempt.model = model,
            Event::BlockDelta {
                delta: Delta::Text { text },
                ..
            } => {
                if attempt.reply.len() + text.len() > limits::REPLY_BYTES_MAX {
                    let message = "the reply is longer than allowed";
                    let error = Error::new(ErrorKind::InvalidResponse, Phase::MidStream, message);
                    return self.lose(number, error, now_ms, out);
                }
                attempt.reply.push_str(&text);
                self.lead(number, now_ms, out);
                if self.plan.mode == Mode::Stream {
                    self.unflushed_since.get_or_insert(now_ms);
                    self.emit(out, |projector, chunks| projector.push_text(&text, chunks));
                }
            }
            Event::Usage { usage } => attempt.usage.get_or_insert_default().update(usage),
            Event::Finish { reason } => attempt.finish = Some(reason),
            Event::Error { error } => return self.lose(number, error, now_ms, out),
            Event::BlockStart {
                block: Block::ToolCall { name, .. },
                ..
            } if !self.plan.module.manifest.tools.permits(&name) => return self.deny(&name, now_ms, out),
            Event::BlockStart { .. }
            | Event::BlockDelta { .. }
            | Event::BlockEnd { .. }
            | Event::Meta { .. }
            | Event::Warning { .. }
            | Event::Foreign { .. } => {}
        }
        if speaks {
            self.lead(number, now_ms, out);
        }
    }

    /// The first to speak is the one that is heard; the others are dropped at once.
    fn lead(&mut self, number: u32, now_ms: u64, out: &mut Vec<Output>) {
        if self.leader.is_some() {
            return;
        }
        self.leader = Some(number);
        self.hedge_at = None;
        let losers: Vec<u32> = self
            .open
            .iter()
            .map(|attempt| attempt.number)
            .filter(|other| *other != number)
            .collect();
        for loser in losers {
            if let Some(attempt) = self.close(loser, Outcome::HedgeLost, None, now_ms, out) {
                attempt.lease.lose(self.dispatch.fleet_ms(now_ms));
            }
        }
    }

    /// A stream that ends behind its finish is complete; any other was cut.
    pub(super) fn hang_up(&mut self, number: u32, now_ms: u64, out: &mut Vec<Output>) {
        let Some(attempt) = self.open.iter().find(|attempt| attempt.number == number) else {
            return;
        };
        if attempt.finish.is_some() {
            return self.settle(number, now_ms, out);
        }
        let phase = match attempt.heard_ms {
            None => Phase::BeforeFirstByte,
            Some(_) => Phase::MidStream,
        };
        let error = Error::new(ErrorKind::Network, phase, "the back-end broke off its answer");
        self.lose(number, error, now_ms, out);
    }

    pub(super) fn give_up_the_silent(&mut self, now_ms: u64, out: &mut Vec<Output>) {
        let timeouts = self.dispatch.fleet().settings().timeouts;
        let silent: Vec<u32> = self
            .open
            .iter()
            .filter(|attempt| now_ms >= attempt.patience_ms(&timeouts))
            .map(|attempt| attempt.number)
            .collect();
        for number in silent {
            if self.ended {
                return;
            }
            let Some(attempt) = self.open.iter().find(|attempt| attempt.number == number) else {
                continue;
            };
            if attempt.finish.is_some() {
                // The answer is whole; only the connection was not closed.
                self.settle(number, now_ms, out);
                continue;
            }
            let (phase, message) = match attempt.heard_ms {
                None => (Phase::BeforeFirstByte, "the back-end said nothing"),
                Some(heard_ms) if now_ms >= heard_ms + timeouts.idle_ms => {
                    (Phase::MidStream, "the back-end fell silent")
                }
                Some(_) => (Phase::MidStream, "the back-end did not come to an end"),
            };
            let error = Error::new(ErrorKind::Timeout, phase, message);
            self.lose(number, error, now_ms, out);
        }
    }

    /// An answer is whole. One that was stopped by a filter is no answer of this model's; another may give one.
    fn settle(&mut self, number: u32, now_ms: u64, out: &mut Vec<Output>) {
        let filtered = self
            .open
            .iter()
            .any(|attempt| attempt.number == number && attempt.finish == Some(FinishReason::ContentFilter));
        if filtered {
            let message = "the back-end's content filter stopped the answer";
            let error = Error::new(ErrorKind::ContentPolicy, Phase::MidStream, message);
            return self.lose(number, error, now_ms, out);
        }
        self.complete(number, now_ms, out);
    }

    /// The attempt is lost: go on with those that race with it, elsewhere, later, or end.
    fn lose(&mut self, number: u32, error: Error, now_ms: u64, out: &mut Vec<Output>) {
        let Some(attempt) = self.close(number, Outcome::Failed, Some(&error), now_ms, out) else {
            return;
        };
        let member = attempt.lease.member();
        attempt.lease.fail(&error, self.dispatch.fleet_ms(now_ms));
        if self.leader == Some(number) {
            self.leader = None;
        }
        self.stale |= !attempt.reply.is_empty();
        let goes_on = self.dispatch.fail(member, &error, now_ms);
        self.loss = Some(Loss {
            error: error.clone(),
            reply: attempt.reply,
        });
        // A request that is wrong in itself is wrong everywhere.
        if !goes_on {
            self.drop_all(Outcome::Cancelled, now_ms, out);
            return self.exhaust(error, out);
        }
        if self.open.is_empty() {
            self.hedge_at = None;
            self.advance(None, now_ms, out);
        }
    }

    /// Sets the time for a second call, where the policy wants one.
    fn arm_hedge(&mut self, member: usize, now_ms: u64) {
        let Some(Policy::Hedged { delay_ms, .. }) = self.dispatch.policy() else {
            return;
        };
        self.hedge_at = Some(now_ms + self.dispatch.hedge_delay_ms(member, delay_ms));
    }

    pub(super) fn hedge(&mut self, now_ms: u64, out: &mut Vec<Output>) {
        self.hedge_at = None;
        let Some(Policy::Hedged { k, .. }) = self.dispatch.policy() else {
            return;
        };
        if self.leader.is_some() || self.open.is_empty() || self.open.len() >= k as usize {
            return;
        }
        let open: Vec<usize> = self.open.iter().map(|attempt| attempt.lease.member()).collect();
        let Some(lease) = self.dispatch.hedge(&open, now_ms) else {
            return;
        };
        self.arm_hedge(lease.member(), now_ms);
        let reason = Some(String::from("no first token yet"));
        self.call(lease, Role::Hedge, reason, now_ms, out);
    }

    /// Takes an attempt off the list, hangs up and writes its record: the one place that does.
    pub(super) fn close(
        &mut self,
        number: u32,
        outcome: Outcome,
        error: Option<&Error>,
        now_ms: u64,
        out: &mut Vec<Output>,
    ) -> Option<Attempt> {
        let at = self.open.iter().position(|attempt| attempt.number == number)?;
        let attempt = self.open.remove(at);
        out.push(Output::Close { attempt: number });
        let candidate = &self.dispatch.fleet().candidates()[attempt.lease.member()];
        let request = self.dispatch.request();
        let record = attempt.record(candidate, request, outcome, error, now_ms);
        self.records.push(record);
        Some(attempt)
    }

    /// Hangs up on everyone; returns the text of the one that was heard.
    pub(super) fn drop_all(
        &mut self,
        outcome: Outcome,
        now_ms: u64,
        out: &mut Vec<Output>,
    ) -> Option<String> {
        self.waiting_until = None;
        self.hedge_at = None;
        let numbers: Vec<u32> = self.open.iter().map(|attempt| attempt.number).collect();
        let mut heard = None;
        for number in numbers {
            let attempt = self.close(number, outcome, None, now_ms, out);
            if self.leader == Some(number) {
                heard = attempt.map(|attempt| attempt.reply);
            }
        }
        heard
    }
}
