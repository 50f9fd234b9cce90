//! How a run handles its attempts: what it emits of their events, which one is the leader, and what follows
//! when one fails.

use std::sync::Arc;

use ir::error::Phase;
use ir::event::{Block, Delta, FinishReason};
use ir::{ChatRequest, Error, ErrorKind, Event, Payload, Request};
use module::stream::RepetitionDetector;

use super::{Output, ReaskTarget, RunMachine};
use crate::attempts::{AttemptStart, NextAttempt};
use crate::limits;
use crate::run::command::RunMode;
use crate::run::record::AttemptOutcome;

impl RunMachine {
    /// Starts the next attempt, waits for its time, or ends the run. `again` is the reason of a reask.
    pub(super) fn advance(&mut self, again: Option<String>, now_ms: u64, out: &mut Vec<Output>) {
        let deadline_ms = self.deadline_ms();
        match self.calls.advance(again, deadline_ms, now_ms) {
            NextAttempt::Start(call) => self.call(call, out),
            NextAttempt::Wait { until_ms } => {
                self.progress("queue", format!("waiting {} ms", until_ms - now_ms), out);
            }
            NextAttempt::Exhausted(error) => self.finish_exhausted(error, out),
        }
    }

    /// Calls the instance that gave the last answer, or selects a new one.
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
        if std::mem::take(&mut self.needs_restart) {
            match self.plan.mode {
                RunMode::Stream => self.emit(out, |projector, chunks| projector.restart(chunks)),
                RunMode::Sync => self.projector = self.plan.projector(),
            }
        }
        self.repetition = RepetitionDetector::default();
        let AttemptStart { attempt, member } = call;
        self.progress("attempt", format!("attempt {attempt}"), out);
        let request = self.request_for(member);
        out.push(Output::StartAttempt {
            attempt,
            member,
            request,
        });
    }

    /// The request with the settings of the back-end, and at least the default limit of its answer.
    fn request_for(&self, member: usize) -> Arc<Request> {
        let request = self.calls.request();
        let candidate = &self.calls.dispatch().fleet().candidates()[member];
        let mut settings = candidate.generation.clone();
        settings
            .max_output_tokens
            .get_or_insert(limits::OUTPUT_TOKENS_DEFAULT);
        let is_complete = |chat: &ChatRequest| !settings.changes(&chat.generation);
        if request.as_chat().is_none_or(is_complete) {
            return request.clone();
        }
        let mut request = Request::clone(request);
        if let Payload::Chat(chat) = &mut request.payload {
            settings.fill(&mut chat.generation);
        }
        Arc::new(request)
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
                    let error = Error::new(ErrorKind::AnswerTooLarge, Phase::MidStream, message);
                    return self.fail_attempt(number, error, now_ms, out);
                }
                self.reply.push_str(&text);
                if self.plan.mode == RunMode::Stream {
                    self.unflushed_since.get_or_insert(now_ms);
                    self.emit(out, |projector, chunks| projector.push_text(&text, chunks));
                }
                if self.repetition.push(&text) {
                    self.finish_repetition(number, now_ms, out);
                }
            }
            Event::Warning { warning } => self.notices.entry(number).or_default().add(warning),
            Event::Error { error } => self.fail_attempt(number, error, now_ms, out),
            Event::BlockStart {
                block: Block::ToolCall { name, .. },
                ..
            } if !self.plan.module.manifest.tools.permits(&name) => {
                self.finish_tool_denied(&name, now_ms, out);
            }
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

    /// The first attempt with output becomes the leader; the others are cancelled at once.
    fn lead(&mut self, number: u32, now_ms: u64, out: &mut Vec<Output>) {
        let losers = self.calls.promote(number, now_ms);
        out.extend(
            losers
                .into_iter()
                .map(|attempt| Output::CancelAttempt { attempt }),
        );
    }

    /// A stream that ends after its finish event is complete; any other was truncated.
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
                // The answer is complete; only the connection was not closed.
                None => self.finish_attempt(number, now_ms, out),
            }
        }
    }

    /// Handles a complete answer. One stopped by a content filter counts as failed; another model may answer.
    fn finish_attempt(&mut self, number: u32, now_ms: u64, out: &mut Vec<Output>) {
        let attempt = self.calls.attempt(number);
        if attempt.is_some_and(|attempt| attempt.finish == Some(FinishReason::ContentFilter)) {
            let message = "the back-end's content filter stopped the answer";
            let error = Error::new(ErrorKind::ContentPolicy, Phase::MidStream, message);
            return self.fail_attempt(number, error, now_ms, out);
        }
        self.complete(number, now_ms, out);
    }

    /// Fails an attempt: the run continues with concurrent attempts, a failover or a retry, or ends.
    fn fail_attempt(&mut self, number: u32, error: Error, now_ms: u64, out: &mut Vec<Output>) {
        let Some(failed) = self.calls.fail(number, &error, now_ms) else {
            return;
        };
        out.push(Output::CancelAttempt { attempt: number });
        self.notices.remove(&number);
        self.failed_reply = match failed.was_leader {
            true => std::mem::take(&mut self.reply),
            false => String::new(),
        };
        self.needs_restart |= !self.failed_reply.is_empty();
        if !failed.retryable {
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

    /// Cancels all attempts; returns the text of the leader.
    pub(super) fn cancel_attempts(
        &mut self,
        outcome: AttemptOutcome,
        now_ms: u64,
        out: &mut Vec<Output>,
    ) -> Option<String> {
        let reply = self.calls.leader().map(|_| std::mem::take(&mut self.reply));
        let dropped = self.calls.cancel_all(outcome, now_ms);
        out.extend(
            dropped
                .into_iter()
                .map(|attempt| Output::CancelAttempt { attempt }),
        );
        reply
    }
}
