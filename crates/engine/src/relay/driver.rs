//! IO driver of a relayed call: polls the open upstream calls, steps the state machine and executes its
//! outputs, in the caller's task. Dropping it cancels all upstream calls at once and writes the end record.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};
use ir::adaptation::Adaptation;
use ir::event::{ADAPTED, Warning};
use ir::operation::Operation;
use ir::{Error, Event, Request, RunId};
use tenancy::Tenant;
use tokio::time::{Instant, Sleep};
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::RelayPart;
use super::machine::{Input, Output, RelayMachine};
use super::tool_emulation::{self, CallParser};
use super::{patch_warnings, unary};
use crate::admission::Permit;
use crate::fleet::Fleet;
use crate::limits;
use crate::port::{
    Account, Backend, Clock, EventStream, RawItem, RawRequest, RawStream, RunEnd, UnaryResponse,
};
use crate::run::{AttemptRecord, MirrorTasks, TraceStore};

#[derive(Debug)]
pub(super) struct RelayDriver {
    pub(super) run: RunId,
    pub(super) machine: RelayMachine,
    pub(super) tenant: Tenant,
    pub(super) fleet: Arc<Fleet>,
    pub(super) verbatim: Option<Arc<RawRequest>>,
    /// `None` where the frame journaler writes the run's end.
    pub(super) account: Option<Account>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) traces: Arc<TraceStore>,
    pub(super) shadows: MirrorTasks,
    pub(super) began: Instant,
    pub(super) work: DriverState,
    /// Released after the end record is written.
    pub(super) guards: Option<(Option<Permit>, TaskTrackerToken)>,
}

/// State of the calls in progress.
#[derive(Default)]
pub(super) struct DriverState {
    /// By attempt number.
    calls: Vec<(u32, UpstreamCall)>,
    outputs: Vec<Output>,
    ready_parts: VecDeque<RelayPart>,
    answer: Option<Box<UnaryResponse>>,
    timer: Option<Pin<Box<Sleep>>>,
    settled: bool,
    /// How the call ended, where there is no open record to write it to.
    end: Option<RunEnd>,
}

/// An open call of a back-end.
enum UpstreamCall {
    Events(EventStream),
    /// Tools are emulated by prompt: output may have to be buffered.
    EmulatedTools {
        events: EventStream,
        reply: Box<CallParser>,
        ready: VecDeque<Event>,
    },
    Raw(RawStream),
    Unary(Option<BoxFuture<'static, Result<UnaryResponse, Error>>>),
}

impl RelayDriver {
    pub(super) fn start(&mut self) {
        self.step(Input::Start);
    }

    /// The next ready part; `None` at the end.
    pub(super) fn poll_part(&mut self, context: &mut Context<'_>) -> Poll<Option<RelayPart>> {
        loop {
            if let Some(part) = self.work.ready_parts.pop_front() {
                return Poll::Ready(Some(part));
            }
            if self.machine.has_ended() {
                self.finalize();
                return Poll::Ready(None);
            }
            let input = ready!(self.poll_input(context));
            self.step(input);
        }
    }

    /// Waits for a part and drains all that are ready, so that they are sent in one write. Returns whether
    /// there was any. Cancel-safe.
    pub(super) async fn next_parts(&mut self, parts: &mut Vec<RelayPart>) -> bool {
        poll_fn(|context| self.poll_parts(context, parts)).await
    }

    pub(super) fn poll_parts(&mut self, context: &mut Context<'_>, parts: &mut Vec<RelayPart>) -> Poll<bool> {
        let mut taken = 0;
        while taken < limits::BATCH_EVENTS_MAX {
            match self.poll_part(context) {
                Poll::Ready(Some(part)) => parts.push(part),
                Poll::Ready(None) => return Poll::Ready(taken > 0),
                Poll::Pending if taken > 0 => break,
                Poll::Pending => return Poll::Pending,
            }
            taken += 1;
        }
        Poll::Ready(true)
    }

    /// Ready when a part is available or the call has ended.
    pub(super) fn poll_first(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while self.work.ready_parts.is_empty() && !self.machine.has_ended() {
            let input = ready!(self.poll_input(context));
            self.step(input);
        }
        Poll::Ready(())
    }

    pub(super) fn has_output(&self) -> bool {
        !self.work.ready_parts.is_empty()
    }

    pub(super) fn take_answer(&mut self) -> Option<Box<UnaryResponse>> {
        self.work.answer.take()
    }

    /// The back-end of the leading attempt.
    pub(super) fn backend(&self) -> Option<&Backend> {
        let upstream = self.fleet.upstream(self.machine.speaker()?)?;
        Some(upstream.backend())
    }

    /// The number of the key that is used.
    pub(super) fn key(&self) -> u32 {
        let speaker = self.machine.speaker();
        let candidate = speaker.and_then(|member| self.fleet.candidates().get(member));
        candidate.map_or(0, |candidate| candidate.key)
    }

    fn poll_input(&mut self, context: &mut Context<'_>) -> Poll<Input> {
        let lines = &mut self.work.calls;
        for at in 0..lines.len() {
            let (attempt, line) = &mut lines[at];
            let attempt = *attempt;
            match line.poll_next(attempt, context) {
                Poll::Ready(Some(input)) => return Poll::Ready(input),
                Poll::Ready(None) => {
                    drop(lines.remove(at));
                    return Poll::Ready(Input::Ended { attempt });
                }
                Poll::Pending => {}
            }
        }
        self.poll_timer(context).map(|()| Input::Tick)
    }

    /// Resets the timer only when it fires or would fire too late: most events only postpone the deadline.
    fn poll_timer(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(wake_ms) = self.machine.next_wake_ms() else {
            return Poll::Pending;
        };
        let wake = self.began + Duration::from_millis(wake_ms);
        let alarm = self
            .work
            .timer
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(wake)));
        if alarm.deadline() > wake {
            alarm.as_mut().reset(wake);
        }
        while alarm.as_mut().poll(context).is_ready() {
            if Instant::now() >= wake {
                self.work.timer = None;
                return Poll::Ready(());
            }
            alarm.as_mut().reset(wake);
        }
        Poll::Pending
    }

    fn step(&mut self, input: Input) {
        let now_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let mut outputs = std::mem::take(&mut self.work.outputs);
        self.machine.step(input, now_ms, &mut outputs);
        for output in outputs.drain(..) {
            match output {
                Output::StartAttempt {
                    attempt,
                    member,
                    request,
                    verbatim,
                } => {
                    let line = self.open(member, request, verbatim);
                    self.work.calls.extend(line.map(|line| (attempt, line)));
                }
                Output::Mirror { guard, request } => {
                    if let (Some(upstream), Operation::ChatCompletions) =
                        (self.fleet.upstream(guard.member()), request.operation())
                    {
                        let candidate = &self.fleet.candidates()[guard.member()];
                        let prompted = tool_emulation::emulate(&request, candidate, self.run, false);
                        let prompted = prompted.ok().flatten().map(|prompted| prompted.request);
                        let events = upstream.stream(prompted.unwrap_or(request));
                        self.shadows.begin(self.run, guard, self.fleet.clone(), events);
                    }
                }
                Output::CancelAttempt { attempt } => self.work.calls.retain(|(number, _)| *number != attempt),
                Output::Emit(part) => self.work.ready_parts.push_back(part),
                Output::Answer(answer) => self.work.answer = Some(answer),
            }
        }
        self.work.outputs = outputs;
    }

    fn open(&self, member: usize, request: Arc<Request>, verbatim: bool) -> Option<UpstreamCall> {
        let upstream = self.fleet.upstream(member)?;
        let candidate = &self.fleet.candidates()[member];
        let notices = match patch_warnings::notices(upstream.as_ref(), &request) {
            Ok(notices) => notices,
            Err(error) => return Some(UpstreamCall::failed(error)),
        };
        if request.operation() != Operation::ChatCompletions {
            let answer = unary::call(upstream, candidate, request, notices);
            return Some(UpstreamCall::Unary(Some(answer)));
        }
        // An attempt without raw output continues a text.
        match tool_emulation::emulate(&request, candidate, self.run, !verbatim) {
            Ok(None) => {}
            Ok(Some(prompted)) => {
                return Some(UpstreamCall::EmulatedTools {
                    events: with_warnings(notices, upstream.stream(prompted.request)),
                    reply: Box::new(prompted.reply),
                    ready: VecDeque::new(),
                });
            }
            Err(error) => return Some(UpstreamCall::failed(error)),
        }
        let words = self.verbatim.as_ref().filter(|_| verbatim);
        let pieces = words.and_then(|words| upstream.stream_raw(&request, words));
        Some(match pieces {
            Some(pieces) => UpstreamCall::Raw(pieces),
            None => UpstreamCall::Events(with_warnings(notices, upstream.stream(request))),
        })
    }

    /// Cancels the call.
    pub(super) fn cancel(&mut self) {
        // Upstream calls first: they must not continue while records are written.
        self.work.calls.clear();
        if !self.machine.has_ended() {
            self.step(Input::Cancel);
        }
    }

    /// How the call ended; `Some` once.
    pub(super) fn take_end(&mut self) -> Option<RunEnd> {
        self.finalize();
        self.work.end.take()
    }

    /// Writes the end record, once.
    fn finalize(&mut self) {
        if std::mem::replace(&mut self.work.settled, true) {
            return;
        }
        let trace = self.machine.trace();
        let spent = trace.attempts.iter().map(AttemptRecord::usage_row).collect();
        let end = RunEnd::new(trace.code.clone(), self.clock.now_ms(), spent);
        match self.account.take() {
            Some(account) => account.end(end),
            None => self.work.end = Some(end),
        }
        self.traces.put(&self.tenant, trace);
        self.guards = None;
    }
}

impl Drop for RelayDriver {
    fn drop(&mut self) {
        self.cancel();
        self.finalize();
    }
}

/// Puts the changes of the request before all other events, as warnings.
fn with_warnings(notices: Vec<Adaptation>, events: EventStream) -> EventStream {
    if notices.is_empty() {
        return events;
    }
    let notices = notices.into_iter().map(|change| {
        let warning = Warning::new(ADAPTED, format!("{}: {}", change.pointer, change.reason));
        Event::Warning { warning }
    });
    stream::iter(notices).chain(events).boxed()
}

impl UpstreamCall {
    fn failed(error: Error) -> Self {
        Self::Events(stream::iter([Event::Error { error }]).boxed())
    }

    /// The next input of this attempt; `None` at the end of its stream.
    fn poll_next(&mut self, attempt: u32, context: &mut Context<'_>) -> Poll<Option<Input>> {
        let said = match self {
            Self::Events(events) => ready!(events.poll_next_unpin(context)).map(RawItem::Event),
            Self::EmulatedTools { events, reply, ready } => {
                if ready.is_empty() {
                    let Some(event) = ready!(events.poll_next_unpin(context)) else {
                        return Poll::Ready(None);
                    };
                    reply.push(event, ready);
                }
                let Some(event) = ready.pop_front() else {
                    let bytes = reply.buffered_bytes();
                    return Poll::Ready(Some(Input::Buffered { attempt, bytes }));
                };
                Some(RawItem::Event(event))
            }
            Self::Raw(pieces) => ready!(pieces.poll_next_unpin(context)),
            Self::Unary(future) => {
                let Some(pending) = future else {
                    return Poll::Ready(None);
                };
                let answer = ready!(pending.as_mut().poll(context));
                *future = None;
                match answer {
                    Ok(answer) => {
                        let answer = Box::new(answer);
                        return Poll::Ready(Some(Input::Completed { attempt, answer }));
                    }
                    Err(error) => Some(RawItem::Event(Event::Error { error })),
                }
            }
        };
        Poll::Ready(said.map(|said| Input::Received { attempt, said }))
    }
}

impl std::fmt::Debug for DriverState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Work")
            .field("lines", &self.calls.len())
            .finish_non_exhaustive()
    }
}
