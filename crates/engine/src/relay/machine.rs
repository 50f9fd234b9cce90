//! A relayed call as a pure state machine: what has happened goes in, what is to be done comes out; time is
//! a number of milliseconds since the call began.
//!
//! What it keeps: nothing is shown before a back-end has spoken, so until then any other may take its
//! place; of several that are asked at once, one is heard; behind what was shown comes the rest of it or
//! exactly one error; nothing comes behind an end, and never a good end behind an error.

use std::sync::Arc;

use ir::operation::Feature;
use ir::{Error, ErrorKind, Event, Phase, Request, RunId, TraceContext, Usage};

use super::RelayPart;
use super::continuation::Continuation;
use crate::attempts::{Attempts, NextAttempt};
use crate::fleet::{BackendSelector, InFlightGuard};
use crate::limits;
use crate::port::{UnaryResponse, RawItem};
use crate::route::{Explanation, Policy};
use crate::run::{AttemptRecord, AttemptOutcome, Trace};

/// What has happened.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one exists at a time, on the stack")]
pub enum Input {
    Start,
    /// An open attempt said something.
    Received {
        attempt: u32,
        said: RawItem,
    },
    /// An open attempt said something that cannot be told yet: so much of its answer is kept back by now.
    Buffered {
        attempt: u32,
        bytes: usize,
    },
    /// An open attempt gave its whole answer.
    Completed {
        attempt: u32,
        answer: Box<UnaryResponse>,
    },
    /// An open attempt's stream is over.
    Ended {
        attempt: u32,
    },
    /// The time that [`Machine::next_wake_ms`] named has come. Earlier ticks do no harm.
    Tick,
    /// Nobody wants the answer any more.
    Cancel,
}

/// What is to be done.
#[derive(Debug)]
pub enum Output {
    /// Begin an attempt on this member of the fleet.
    StartAttempt {
        attempt: u32,
        member: usize,
        request: Arc<Request>,
        /// It may answer in the caller's own words.
        verbatim: bool,
    },
    /// Send a copy that nobody waits for; it ends by itself.
    Mirror {
        lease: InFlightGuard,
        request: Arc<Request>,
    },
    /// Drop the attempt's stream.
    CancelAttempt {
        attempt: u32,
    },
    Emit(RelayPart),
    Answer(Box<UnaryResponse>),
}

/// What a machine is told before it starts.
#[derive(Clone, Copy, Debug)]
pub struct RelayConfig {
    pub run: RunId,
    /// The caller's place in a trace.
    pub trace: Option<TraceContext>,
}

#[derive(Debug)]
pub struct RelayMachine {
    plan: RelayConfig,
    calls: Attempts,
    /// What the caller asked, before anything was added to it.
    asked: Arc<Request>,
    explanation: Option<Explanation>,
    /// The caller takes the answer as it comes, rather than whole.
    streams: bool,
    /// What was said and must not be shown yet: before a leader is known, or before an answer is whole.
    buffered: Vec<(u32, RawItem)>,
    held_bytes: usize,
    /// Who is, or was, the one that is heard.
    leader_member: Option<usize>,
    emitted: bool,
    /// The caller is being given bytes.
    verbatim: bool,
    shown: Continuation,
    usage: Option<Usage>,
    end: Option<Result<(), Error>>,
}

impl RelayMachine {
    pub fn new(plan: RelayConfig, dispatch: BackendSelector) -> Self {
        let asked = dispatch.request().clone();
        let can_go_on = dispatch
            .fleet()
            .candidates()
            .iter()
            .any(|candidate| candidate.features.contains(&Feature::Prefill));
        Self {
            plan,
            streams: asked.as_chat().is_some_and(ir::ChatRequest::streams),
            shown: Continuation::new(&asked, can_go_on),
            asked,
            calls: Attempts::new(dispatch),
            explanation: None,
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

    /// Why it ended, if that was not with an answer.
    pub fn failure(&self) -> Option<&Error> {
        self.end.as_ref()?.as_ref().err()
    }

    /// Attempts that were begun.
    pub fn attempts(&self) -> u32 {
        self.calls.begun()
    }

    /// The member of the fleet that is heard.
    pub fn speaker(&self) -> Option<usize> {
        self.leader_member
    }

    /// What the answer used, as its back-end says; known at the end.
    pub fn usage(&self) -> Option<&Usage> {
        self.usage.as_ref()
    }

    /// Every attempt that is over.
    pub fn records(&self) -> &[AttemptRecord] {
        self.calls.records()
    }

    /// Every attempt that is over, and what led to it.
    pub fn trace(&self) -> Trace {
        let dispatch = self.calls.dispatch();
        let mut attempts = self.calls.records().to_vec();
        attempts.sort_by_key(|record| record.number);
        let code = self.failure().map(|error| String::from(error.cognitive_code()));
        Trace {
            run: self.plan.run,
            module: String::new(),
            operation: self.asked.operation(),
            requested_model: self.asked.model().map(String::from),
            policy: dispatch.policy().map(Policy::name),
            seed: dispatch.seed(),
            turn: dispatch.turn(),
            order: self.explanation.as_ref().map(|why| why.selected.clone()),
            rejected: self.explanation.as_ref().map(Explanation::reasons),
            parent: self.plan.trace,
            code,
            attempts,
        }
    }

    /// When the machine wants to be woken if nothing else happens.
    pub fn next_wake_ms(&self) -> Option<u64> {
        if self.has_ended() {
            return None;
        }
        let times = [self.calls.next_wake_ms(), self.deadline_ms(), self.close_deadline_ms()];
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
                Some(error) => self.lose(attempt, error, now_ms, out),
                None => self.win(attempt, now_ms, out),
            },
            Input::Tick => self.tick(now_ms, out),
            Input::Cancel => self.cancel(now_ms, out),
        }
    }

    fn start(&mut self, now_ms: u64, out: &mut Vec<Output>) {
        let dispatch = self.calls.dispatch_mut();
        if dispatch.fleet().candidates().len() <= limits::EXPLAINED_MAX {
            self.explanation = dispatch.explain(now_ms).ok();
        }
        if let Some(lease) = dispatch.mirror(now_ms) {
            let request = dispatch.request().clone();
            out.push(Output::Mirror { lease, request });
        }
        self.advance(now_ms, out);
    }

    fn tick(&mut self, now_ms: u64, out: &mut Vec<Output>) {
        if self
            .deadline_ms()
            .is_some_and(|deadline_ms| now_ms >= deadline_ms)
        {
            return self.run_out_of_time(now_ms, out);
        }
        if let Some(done) = self.calls.leader()
            && self.close_deadline_ms().is_some_and(|end_ms| now_ms >= end_ms)
        {
            return self.win(done, now_ms, out);
        }
        for (attempt, error) in self.calls.expired(now_ms) {
            match error {
                _ if self.has_ended() => return,
                Some(error) => self.lose(attempt, error, now_ms, out),
                None => self.win(attempt, now_ms, out),
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
        // A caller can be told to come back; it need not be kept waiting for long.
        let patience_ms = now_ms + limits::RELAY_WAIT_MS;
        let deadline_ms = self
            .deadline_ms()
            .map_or(patience_ms, |end_ms| end_ms.min(patience_ms));
        match self.calls.advance(None, deadline_ms, now_ms) {
            NextAttempt::Start(call) => self.open(call.attempt, call.member, out),
            NextAttempt::Wait { .. } => {}
            // What the last back-end said tells more than that there is no other.
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
            // It has said everything; how the line was dropped changes nothing.
            return;
        }
        let events = match &said {
            RawItem::Event(Event::Error { error }) => {
                let error = error.clone();
                return self.lose(number, error, now_ms, out);
            }
            RawItem::Event(event) => std::slice::from_ref(event),
            RawItem::Chunk(piece) => &piece.events,
        };
        if self.calls.on_events(number, events, now_ms) {
            self.lead(number, now_ms, out);
        }
        if self.streams && self.calls.leader() == Some(number) {
            return self.emit(said, out);
        }
        self.held_bytes += match &said {
            RawItem::Chunk(piece) => piece.bytes.len(),
            RawItem::Event(_) => limits::BUFFERED_EVENT_BYTES,
        };
        let long = self.calls.attempt(number).map_or(0, |attempt| attempt.output_bytes);
        self.buffered.push((number, said));
        if long.max(self.held_bytes) > limits::RELAY_BUFFER_BYTES_MAX {
            let message = "the answer is longer than can be held";
            let error = Error::new(ErrorKind::InvalidResponse, Phase::MidStream, message);
            self.lose(number, error, now_ms, out);
        }
    }

    /// The first to speak is the one that is heard.
    fn lead(&mut self, number: u32, now_ms: u64, out: &mut Vec<Output>) {
        if self.calls.leader().is_some() {
            return;
        }
        for attempt in self.calls.promote(number, now_ms) {
            self.discard(attempt, out);
        }
        self.leader_member = self.calls.attempt(number).map(|attempt| attempt.lease.member());
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
            self.lead(number, now_ms, out);
            out.push(Output::Answer(answer));
            self.win(number, now_ms, out);
        }
    }

    fn win(&mut self, number: u32, now_ms: u64, out: &mut Vec<Output>) {
        let Some(won) = self.calls.complete(number, now_ms) else {
            return;
        };
        self.leader_member = Some(won.member);
        self.usage = won.usage;
        out.push(Output::CancelAttempt { attempt: number });
        self.flush_buffer(number, out);
        self.end = Some(Ok(()));
    }

    /// The attempt is lost: go on with those that race with it, elsewhere, later, or end.
    fn lose(&mut self, number: u32, error: Error, now_ms: u64, out: &mut Vec<Output>) {
        let Some(lost) = self.calls.fail(number, &error, now_ms) else {
            return;
        };
        self.discard(number, out);
        if !lost.retryable {
            self.hang_up(AttemptOutcome::Cancelled, now_ms, out);
            return self.fail(error, out);
        }
        if !self.calls.is_idle() {
            return;
        }
        if self.emitted {
            // Only whoever continues a text can take the place of one that has been heard.
            match self.shown.continuation_request(&self.asked) {
                Some(request) => self.calls.dispatch_mut().continue_with(request),
                None => return self.fail(error, out),
            }
        }
        self.advance(now_ms, out);
    }

    fn run_out_of_time(&mut self, now_ms: u64, out: &mut Vec<Output>) {
        self.hang_up(AttemptOutcome::Cancelled, now_ms, out);
        let phase = match self.emitted {
            true => Phase::MidStream,
            false => Phase::BeforeFirstByte,
        };
        let message = format!("no end after {now_ms} ms");
        self.fail(Error::new(ErrorKind::Timeout, phase, message), out);
    }

    fn cancel(&mut self, now_ms: u64, out: &mut Vec<Output>) {
        // Whoever hangs up behind the last word has the whole answer.
        let done = self.calls.leader().filter(|number| {
            let attempt = self.calls.attempt(*number);
            attempt.is_some_and(|attempt| attempt.finish.is_some()) && self.streams
        });
        if let Some(number) = done {
            return self.win(number, now_ms, out);
        }
        self.hang_up(AttemptOutcome::Cancelled, now_ms, out);
        let phase = match self.emitted {
            true => Phase::MidStream,
            false => Phase::BeforeFirstByte,
        };
        let error = Error::new(ErrorKind::Cancelled, phase, "the caller hung up");
        self.end = Some(Err(error));
    }

    fn hang_up(&mut self, outcome: AttemptOutcome, now_ms: u64, out: &mut Vec<Output>) {
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

    /// Until when a back-end that has said everything may take to hang up: the line can be used again if it
    /// does, and the caller waits no longer than this if it does not.
    fn close_deadline_ms(&self) -> Option<u64> {
        let attempt = self.calls.attempt(self.calls.leader()?)?;
        attempt.finish.as_ref()?;
        Some(attempt.last_event_ms? + limits::LINGER_MS)
    }
}
