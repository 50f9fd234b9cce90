//! How a run takes part in the calls that are made for it: what it shows of them, whose words it takes for
//! the answer, and what follows when one is lost.

use ir::error::Phase;
use ir::event::{Block, Delta, FinishReason};
use ir::{Error, ErrorKind, Event};

use super::{RunMachine, Output, ReaskTarget};
use crate::attempts::{AttemptStart, NextAttempt};
use crate::limits;
use crate::run::command::RunMode;
use crate::run::record::AttemptOutcome;

impl RunMachine {
    /// Calls whoever is next, waits for the right time, or ends. `again` says why another answer is wanted.
    pub(super) fn advance(&mut self, again: Option<String>, now_ms: u64, out: &mut Vec<Output>) {
        let deadline_ms = self.deadline_ms();
        match self.calls.advance(again, deadline_ms, now_ms) {
            NextAttempt::Start(call) => self.call(call, out),
            NextAttempt::Wait { until_ms } => {
                self.progress("queue", format!("waits for {} ms", until_ms - now_ms), out);
            }
            NextAttempt::Exhausted(error) => self.finish_exhausted(error, out),
        }
    }

    /// The same question to whoever gave the last answer, or a new search.
    pub(super) fn reask(
        &mut self,
        selection: &ReaskTarget,
        member: usize,
        reason: String,
        now_ms: u64,
        out: &mut Vec<Output>,
    ) {
        if *selection == ReaskTarget::Same
            && let Some(call) = self.calls.retry_same(member, &reason, now_ms)
        {
            return self.call(call, out);
        }
        self.advance(Some(reason), now_ms, out);
    }

    fn call(&mut self, call: AttemptStart, out: &mut Vec<Output>) {
        if std::mem::take(&mut self.needs_restart) && self.plan.mode == RunMode::Stream {
            self.emit(out, |projector, chunks| projector.restart(chunks));
        }
        let AttemptStart { attempt, member } = call;
        self.progress("attempt", format!("attempt {attempt}"), out);
        let request = self.calls.request().clone();
        out.push(Output::StartAttempt {
            attempt,
            member,
            request,
        });
    }

    pub(super) fn on_event(&mut self, number: u32, event: Event, now_ms: u64, out: &mut Vec<Output>) {
        if self.calls.attempt(number).is_none() {
            return;
        }
        if self.calls.on_events(number, std::slice::from_ref(&event), now_ms) {
            self.lead(number, now_ms, out);
        }
        match event {
            Event::BlockDelta {
                delta: Delta::Text { text },
                ..
            } => {
                if self.reply.len() + text.len() > limits::REPLY_BYTES_MAX {
                    let message = "the reply is longer than allowed";
                    let error = Error::new(ErrorKind::InvalidResponse, Phase::MidStream, message);
                    return self.fail_attempt(number, error, now_ms, out);
                }
                self.reply.push_str(&text);
                if self.plan.mode == RunMode::Stream {
                    self.unflushed_since.get_or_insert(now_ms);
                    self.emit(out, |projector, chunks| projector.push_text(&text, chunks));
                }
            }
            Event::Warning { warning } => self.notices.entry(number).or_default().add(warning),
            Event::Error { error } => self.fail_attempt(number, error, now_ms, out),
            Event::BlockStart {
                block: Block::ToolCall { name, .. },
                ..
            } if !self.plan.module.manifest.tools.permits(&name) => self.finish_tool_denied(&name, now_ms, out),
            Event::Started { .. }
            | Event::BlockStart { .. }
            | Event::BlockDelta { .. }
            | Event::BlockEnd { .. }
            | Event::Usage { .. }
            | Event::Meta { .. }
            | Event::VendorSpecific { .. }
            | Event::Raw { .. }
            | Event::Finish { .. } => {}
        }
    }

    /// The first to speak is the one that is heard; the others are dropped at once.
    fn lead(&mut self, number: u32, now_ms: u64, out: &mut Vec<Output>) {
        let losers = self.calls.promote(number, now_ms);
        out.extend(losers.into_iter().map(|attempt| Output::CancelAttempt { attempt }));
    }

    /// A stream that ends behind its finish is complete; any other was cut.
    pub(super) fn on_stream_end(&mut self, number: u32, now_ms: u64, out: &mut Vec<Output>) {
        match self.calls.truncation_error(number) {
            Some(error) => self.fail_attempt(number, error, now_ms, out),
            None => self.finish_attempt(number, now_ms, out),
        }
    }

    pub(super) fn expire_attempts(&mut self, now_ms: u64, out: &mut Vec<Output>) {
        for (number, error) in self.calls.expired(now_ms) {
            match error {
                _ if self.ended => return,
                Some(error) => self.fail_attempt(number, error, now_ms, out),
                // The answer is whole; only the connection was not closed.
                None => self.finish_attempt(number, now_ms, out),
            }
        }
    }

    /// An answer is whole. One that was stopped by a filter is no answer of this model's; another may give one.
    fn finish_attempt(&mut self, number: u32, now_ms: u64, out: &mut Vec<Output>) {
        let attempt = self.calls.attempt(number);
        if attempt.is_some_and(|attempt| attempt.finish == Some(FinishReason::ContentFilter)) {
            let message = "the back-end's content filter stopped the answer";
            let error = Error::new(ErrorKind::ContentPolicy, Phase::MidStream, message);
            return self.fail_attempt(number, error, now_ms, out);
        }
        self.complete(number, now_ms, out);
    }

    /// The attempt is lost: go on with those that race with it, elsewhere, later, or end.
    fn fail_attempt(&mut self, number: u32, error: Error, now_ms: u64, out: &mut Vec<Output>) {
        let Some(lost) = self.calls.fail(number, &error, now_ms) else {
            return;
        };
        out.push(Output::CancelAttempt { attempt: number });
        self.notices.remove(&number);
        self.failed_reply = match lost.was_leader {
            true => std::mem::take(&mut self.reply),
            false => String::new(),
        };
        self.needs_restart |= !self.failed_reply.is_empty();
        if !lost.retryable {
            self.cancel_attempts(AttemptOutcome::Cancelled, now_ms, out);
            return self.finish_exhausted(error, out);
        }
        if self.calls.is_idle() {
            self.advance(None, now_ms, out);
        }
    }

    pub(super) fn hedge(&mut self, now_ms: u64, out: &mut Vec<Output>) {
        if let Some(call) = self.calls.hedge(now_ms) {
            self.call(call, out);
        }
    }

    /// Hangs up on everyone; returns the text of the one that was heard.
    pub(super) fn cancel_attempts(
        &mut self,
        outcome: AttemptOutcome,
        now_ms: u64,
        out: &mut Vec<Output>,
    ) -> Option<String> {
        let heard = self.calls.leader().map(|_| std::mem::take(&mut self.reply));
        let dropped = self.calls.cancel_all(outcome, now_ms);
        out.extend(dropped.into_iter().map(|attempt| Output::CancelAttempt { attempt }));
        heard
    }
}
