//! State machine of a relayed call, without IO: inputs are events, outputs are commands; time is in
//! milliseconds since the start of the call.
//!
//! Invariants: nothing is emitted before a back-end has produced output, so until then any other back-end can
//! replace it. Of several concurrent attempts, one becomes the leader. Emitted output is followed by its
//! continuation or by exactly one error. Nothing is emitted after the end, and no success follows an error.

use std::sync::Arc;

use ir::operation::Feature;
use ir::{Error, ErrorKind, Event, Phase, Request, RunId, TraceContext, Usage};

use super::RelayPart;
use super::continuation::Continuation;
use crate::attempts::{Attempts, NextAttempt};
use crate::fleet::{BackendSelector, InFlightGuard};
use crate::limits;
use crate::port::{RawItem, UnaryResponse};
use crate::run::{AttemptOutcome, AttemptRecord, Trace};

/// What happened.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one exists at a time, on the stack")]
pub enum Input {
    Start,
    /// An open attempt produced an item.
    Received {
        attempt: u32,
        said: RawItem,
    },
    /// An open attempt received output that is not decided yet; this many bytes of it are buffered.
    Buffered {
        attempt: u32,
        bytes: usize,
    },
    /// An open attempt returned its complete response.
    Completed {
        attempt: u32,
        answer: Box<UnaryResponse>,
    },
    /// The stream of an open attempt ended.
    Ended {
        attempt: u32,
    },
    /// The time returned by [`RelayMachine::next_wake_ms`] is reached. Earlier ticks have no effect.
    Tick,
    /// The caller no longer reads the response.
    Cancel,
}

/// What the driver must do.
#[derive(Debug)]
pub enum Output {
    /// Start an attempt on this member of the fleet.
    StartAttempt {
        attempt: u32,
        member: usize,
        request: Arc<Request>,
        /// The response may be raw bytes in the caller's dialect.
        verbatim: bool,
    },
    /// Send a mirror copy; its result is not awaited.
    Mirror {
        guard: InFlightGuard,
        request: Arc<Request>,
    },
    /// Drop the stream of the attempt.
    CancelAttempt {
        attempt: u32,
    },
    Emit(RelayPart),
    Answer(Box<UnaryResponse>),
}

/// Constants of a call.
#[derive(Clone, Copy, Debug)]
pub struct RelayConfig {
    pub run: RunId,
    /// The caller's trace context.
    pub trace: Option<TraceContext>,
}

#[derive(Debug)]
pub struct RelayMachine {
    plan: RelayConfig,
    calls: Attempts,
    /// The caller's request, before a continuation prefix is added.
    asked: Arc<Request>,
    /// The caller reads a stream, not one complete response.
    streams: bool,
    /// Items that must not be emitted yet: no leader is chosen, or the response is not complete.
    buffered: Vec<(u32, RawItem)>,
    held_bytes: usize,
    /// The fleet member of the current or last leader.
    leader_member: Option<usize>,
    emitted: bool,
    /// The last emitted part was raw bytes.
    verbatim: bool,
    shown: Continuation,
    usage: Option<Usage>,
    end: Option<Result<(), Error>>,
}

impl RelayMachine {
    pub fn new(plan: RelayConfig, dispatch: BackendSelector) -> Self {
        let asked = dispatch.request().clone();
        let can_continue = dispatch
            .fleet()
            .candidates()
            .iter()
            .any(|candidate| candidate.features.contains(&Feature::Prefill));
        Self {
            plan,
            streams: asked.as_chat().is_some_and(ir::ChatRequest::streams),
            shown: Continuation::new(&asked, can_continue),
            asked,
            calls: Attempts::new(dispatch),
            buffered: Vec::new(),
            held_bytes: 0,
            leader_member: None,
            emitted: false,
            verbatim: false,
            usage: None,
            end: None,
        }
    }

    pub fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    /// The error that ended the call; `None` after an answer.
    pub fn failure(&self) -> Option<&Error> {
        self.end.as_ref()?.as_ref().err()
    }

    /// Number of started attempts.
    pub fn attempts(&self) -> u32 {
        self.calls.begun()
    }

    /// The fleet member of the current or last leader.
    pub fn speaker(&self) -> Option<usize> {
        self.leader_member
    }

    /// Usage as reported by the back-end; available at the end.
    pub fn usage(&self) -> Option<&Usage> {
        self.usage.as_ref()
    }

    /// Every finished attempt.
    pub fn records(&self) -> &[AttemptRecord] {
        self.calls.records()
    }

    /// Every finished attempt and the selection that led to it.
    pub fn trace(&self) -> Trace {
        let code = self.failure().map(|error| String::from(error.cognitive_code()));
        Trace {
            code,
            ..self.calls.trace(self.plan.run, self.plan.trace)
        }
    }

    /// The time of the next tick if no other input arrives.
    pub fn next_wake_ms(&self) -> Option<u64> {
        if self.has_ended() {
            return None;
        }
        let times = [
            self.calls.next_wake_ms(),
            self.deadline_ms(),
            self.close_deadline_ms(),
        ];
        times.into_iter().flatten().min()
    }

    pub fn step(&mut self, input: Input, now_ms: u64, out: &mut Vec<Output>) {
        if self.has_ended() {
            return;
        }
        match input {
            Input::Start => self.start(now_ms, out),
            Input::Received { attempt, said } => self.on_item(attempt, said, now_ms, out),
            Input::Buffered { attempt, bytes } => self.calls.on_buffered(attempt, bytes, now_ms),
            Input::Completed { attempt, answer } => self.take_answer(attempt, answer, now_ms, out),
            Input::Ended { attempt } => match self.calls.truncation_error(attempt) {
                Some(error) => self.fail_attempt(attempt, error, now_ms, out),
                None => self.finish_attempt(attempt, now_ms, out),
            },
            Input::Tick => self.tick(now_ms, out),
            Input::Cancel => self.cancel(now_ms, out),
        }
    }

    fn start(&mut self, now_ms: u64, out: &mut Vec<Output>) {
        if let Some(guard) = self.calls.start(now_ms) {
            let request = self.calls.request().clone();
            out.push(Output::Mirror { guard, request });
        }
        self.advance(now_ms, out);
    }

    fn tick(&mut self, now_ms: u64, out: &mut Vec<Output>) {
        if self
            .deadline_ms()
            .is_some_and(|deadline_ms| now_ms >= deadline_ms)
        {
            return self.time_out(now_ms, out);
        }
        if let Some(done) = self.calls.leader()
            && self.close_deadline_ms().is_some_and(|end_ms| now_ms >= end_ms)
        {
            return self.finish_attempt(done, now_ms, out);
        }
        for (attempt, error) in self.calls.expired(now_ms) {
            match error {
                _ if self.has_ended() => return,
                Some(error) => self.fail_attempt(attempt, error, now_ms, out),
                None => self.finish_attempt(attempt, now_ms, out),
            }
        }
        if self.has_ended() {
            return;
        }
        if self.calls.backoff_elapsed(now_ms) {
            self.advance(now_ms, out);
        }
        if let Some(call) = self.calls.hedge(now_ms) {
            self.open(call.attempt, call.member, out);
        }
    }

    fn advance(&mut self, now_ms: u64, out: &mut Vec<Output>) {
        // A caller can retry later, so it waits for a back-end only for a short time.
        let wait_until_ms = now_ms + limits::RELAY_WAIT_MS;
        let deadline_ms = self
            .deadline_ms()
            .map_or(wait_until_ms, |end_ms| end_ms.min(wait_until_ms));
        match self.calls.advance(None, deadline_ms, now_ms) {
            NextAttempt::Start(call) => self.open(call.attempt, call.member, out),
            NextAttempt::Wait { .. } => {}
            // The last back-end error is more specific than "no back-end left".
            NextAttempt::Exhausted(error) => {
                let error = self.calls.take_last_error().unwrap_or(error);
                self.fail(error, out);
            }
        }
    }

    fn open(&self, attempt: u32, member: usize, out: &mut Vec<Output>) {
        out.push(Output::StartAttempt {
            attempt,
            member,
            request: self.calls.request().clone(),
            verbatim: !self.shown.is_continuing(),
        });
    }

    fn on_item(&mut self, number: u32, said: RawItem, now_ms: u64, out: &mut Vec<Output>) {
        let Some(attempt) = self.calls.attempt(number) else {
            return;
        };
        if attempt.finish.is_some() && matches!(said, RawItem::Event(Event::Error { .. })) {
            // All output has arrived; an error after the finish event changes nothing.
            return;
        }
        let events = match &said {
            RawItem::Event(Event::Error { error }) => {
                let error = error.clone();
                return self.fail_attempt(number, error, now_ms, out);
            }
            RawItem::Event(event) => std::slice::from_ref(event),
            RawItem::Chunk(piece) => &piece.events,
        };
        if self.calls.on_events(number, events, now_ms) {
            self.promote(number, now_ms, out);
        }
        if self.streams && self.calls.leader() == Some(number) {
            return self.emit(said, out);
        }
        self.held_bytes += match &said {
            RawItem::Chunk(piece) => piece.bytes.len(),
            RawItem::Event(_) => limits::BUFFERED_EVENT_BYTES,
        };
        let long = self
            .calls
            .attempt(number)
            .map_or(0, |attempt| attempt.output_bytes);
        self.buffered.push((number, said));
        if long.max(self.held_bytes) > limits::RELAY_BUFFER_BYTES_MAX {
            let message = "the answer exceeds the relay buffer";
            let error = Error::new(ErrorKind::AnswerTooLarge, Phase::MidStream, message);
            self.fail_attempt(number, error, now_ms, out);
        }
    }

    /// The first attempt with output becomes the leader.
    fn promote(&mut self, number: u32, now_ms: u64, out: &mut Vec<Output>) {
        if self.calls.leader().is_some() {
            return;
        }
        for attempt in self.calls.promote(number, now_ms) {
            self.discard(attempt, out);
        }
        self.leader_member = self.calls.attempt(number).map(|attempt| attempt.guard.member());
        if self.streams {
            self.flush_buffer(number, out);
        }
    }

    fn flush_buffer(&mut self, number: u32, out: &mut Vec<Output>) {
        for (attempt, said) in std::mem::take(&mut self.buffered) {
            if attempt == number {
                self.emit(said, out);
            }
        }
        self.held_bytes = 0;
    }

    fn discard(&mut self, number: u32, out: &mut Vec<Output>) {
        self.buffered.retain(|(attempt, _)| *attempt != number);
        out.push(Output::CancelAttempt { attempt: number });
    }

    fn emit(&mut self, said: RawItem, out: &mut Vec<Output>) {
        self.emitted = true;
        match said {
            RawItem::Chunk(piece) => {
                self.verbatim = true;
                piece.events.iter().for_each(|event| self.shown.observe(event));
                out.push(Output::Emit(RelayPart::Raw(piece)));
            }
            RawItem::Event(event) => {
                let Some(event) = self.shown.remap(event) else {
                    return;
                };
                if std::mem::take(&mut self.verbatim) {
                    out.push(Output::Emit(RelayPart::Replay(self.shown.emitted_events())));
                }
                self.shown.observe(&event);
                out.push(Output::Emit(RelayPart::Event(event)));
            }
        }
    }

    fn take_answer(&mut self, number: u32, answer: Box<UnaryResponse>, now_ms: u64, out: &mut Vec<Output>) {
        if let Some(usage) = &answer.usage {
            let usage = usage.clone();
            self.calls.on_events(number, &[Event::Usage { usage }], now_ms);
        }
        let reason = ir::FinishReason::Stop;
        if self.calls.on_events(number, &[Event::Finish { reason }], now_ms) {
            self.promote(number, now_ms, out);
            out.push(Output::Answer(answer));
            self.finish_attempt(number, now_ms, out);
        }
    }

    fn finish_attempt(&mut self, number: u32, now_ms: u64, out: &mut Vec<Output>) {
        let Some(won) = self.calls.complete(number, now_ms) else {
            return;
        };
        self.leader_member = Some(won.member);
        self.usage = won.usage;
        out.push(Output::CancelAttempt { attempt: number });
        self.flush_buffer(number, out);
        self.end = Some(Ok(()));
    }

    /// The attempt failed: continue with concurrent attempts, fail over, wait, or end.
    fn fail_attempt(&mut self, number: u32, error: Error, now_ms: u64, out: &mut Vec<Output>) {
        let Some(lost) = self.calls.fail(number, &error, now_ms) else {
            return;
        };
        self.discard(number, out);
        if !lost.retryable {
            self.cancel_attempts(AttemptOutcome::Cancelled, now_ms, out);
            return self.fail(error, out);
        }
        if !self.calls.is_idle() {
            return;
        }
        if self.emitted {
            // After output, only a back-end that can continue a text can take over.
            match self.shown.continuation_request(&self.asked) {
                Some(request) => self.calls.dispatch_mut().continue_with(request),
                None => return self.fail(error, out),
            }
        }
        self.advance(now_ms, out);
    }

    fn time_out(&mut self, now_ms: u64, out: &mut Vec<Output>) {
        self.cancel_attempts(AttemptOutcome::Cancelled, now_ms, out);
        let phase = match self.emitted {
            true => Phase::MidStream,
            false => Phase::BeforeFirstByte,
        };
        let message = format!("timed out after {now_ms} ms");
        self.fail(Error::new(ErrorKind::Timeout, phase, message), out);
    }

    fn cancel(&mut self, now_ms: u64, out: &mut Vec<Output>) {
        // A cancel after the finish event counts as success.
        let done = self.calls.leader().filter(|number| {
            let attempt = self.calls.attempt(*number);
            attempt.is_some_and(|attempt| attempt.finish.is_some()) && self.streams
        });
        if let Some(number) = done {
            return self.finish_attempt(number, now_ms, out);
        }
        self.cancel_attempts(AttemptOutcome::Cancelled, now_ms, out);
        let phase = match self.emitted {
            true => Phase::MidStream,
            false => Phase::BeforeFirstByte,
        };
        let error = Error::new(ErrorKind::Cancelled, phase, "the caller disconnected");
        self.end = Some(Err(error));
    }

    fn cancel_attempts(&mut self, outcome: AttemptOutcome, now_ms: u64, out: &mut Vec<Output>) {
        for attempt in self.calls.cancel_all(outcome, now_ms) {
            self.discard(attempt, out);
        }
    }

    fn fail(&mut self, error: Error, out: &mut Vec<Output>) {
        if self.emitted {
            let event = Event::Error { error: error.clone() };
            out.push(Output::Emit(RelayPart::Event(event)));
        }
        self.end = Some(Err(error));
    }

    fn deadline_ms(&self) -> Option<u64> {
        self.asked.timeout_ms
    }

    /// The time by which a back-end should close its stream after the finish event: until then the connection
    /// can be reused, and the caller does not wait longer.
    fn close_deadline_ms(&self) -> Option<u64> {
        let attempt = self.calls.attempt(self.calls.leader()?)?;
        attempt.finish.as_ref()?;
        Some(attempt.last_event_ms? + limits::LINGER_MS)
    }
}
