//! The hands of a run: waits for whatever comes first, lets the machine decide, and carries it out.
//! Events are journaled before anyone sees them. Everything that could be a decision is the machine's.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures::{FutureExt, StreamExt};
use ir::{Request, RunId};
use module::Code;
use module::envelope::{Envelope, ErrorBody};
use module::stream::{Chunk, Recovery};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use super::broadcast::RunBroadcast;
use super::machine::{Input, RunMachine, Output};
use super::record::{AttemptRecord, Trace};
use super::render::encode;
use super::mirror::MirrorTasks;
use super::trace_store::TraceStore;
use crate::admission::Permit;
use crate::compose::{CompositionStream, CompositionEvent};
use crate::crowd::Crowd;
use crate::error::journal_full;
use crate::fleet::Fleet;
use crate::limits;
use crate::port::{LifecycleRecord, Clock, RunEnd, JournalEntry, EventStream, Journal, JournalError, EventKind, EncodedEvent, AttemptUsage};

#[derive(Debug)]
pub(crate) struct RunTask {
    pub(crate) run: RunId,
    pub(crate) machine: Box<RunMachine>,
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) live: Arc<RunBroadcast>,
    /// Where the journal ends.
    pub(crate) offset: u64,
    /// Another server began it; what that one used is not known.
    pub(crate) taken_over: bool,
    /// It writes nothing but its end, and waits for nobody to do it.
    pub(crate) spooled: bool,
    /// How long its first events wait for those of its back-end.
    pub(crate) first_write_delay: Duration,
    /// The server stops: leave the run as it is, for the next one.
    pub(crate) stop: CancellationToken,
    pub(crate) traces: Arc<TraceStore>,
    pub(crate) shadows: MirrorTasks,
    pub(crate) crowd: Crowd,
    /// The steps that come first, until they are begun.
    pub(crate) preparation: Option<CompositionStream>,
    /// Held until the run has ended.
    pub(crate) _permit: Option<Permit>,
}

/// What a machine's outputs amount to until they are flushed.
#[derive(Default)]
struct PendingOutputs {
    /// By the number of the attempt.
    streams: Vec<(u32, EventStream)>,
    preparation: Option<CompositionStream>,
    events: Vec<EncodedEvent>,
    /// Most events of the next write, once the first words of the answer are written or about to be.
    batch_limit: Option<usize>,
    finish: Option<MachineEnd>,
}

/// How the machine ended.
struct MachineEnd {
    code: Option<String>,
    review: Option<String>,
}

impl RunTask {
    /// Runs to the end, or until the server stops.
    pub(crate) async fn drive(mut self: Box<Self>) {
        // Nobody is asked for a run that is not in the accounts.
        if let Err(error) = self.journal.flush(self.run) {
            let unclosed = self.on_journal_error(error).boxed().await;
            return self.end(unclosed).await;
        }
        let began = Instant::now();
        let mut work = PendingOutputs::default();
        let mut unclosed = None;
        self.step(Input::Start, began, &mut work);
        self.crowd.gather().await;
        // The back-end is asked before the journal is, so that one does not wait for the other.
        self.drain_ready(&mut work, began);
        // What is rare or soon over has a box of its own: a run that goes on holds no room for it.
        if !self.batch_first_events(&mut work, began).boxed().await {
            self.live.close();
            return;
        }
        loop {
            if let Err(error) = self.flush(&mut work).await {
                unclosed = self.on_journal_error(error).boxed().await;
                break;
            }
            if self.machine.has_ended() {
                break;
            }
            let Some(input) = self.wait(&mut work, began).await else {
                break;
            };
            if self.spooled {
                // A whole answer is judged together with others; words that somebody waits for are not held back.
                self.crowd.gather().await;
            }
            self.step(input, began, &mut work);
            self.drain_ready(&mut work, began);
        }
        self.end(unclosed).await;
    }

    /// Nothing more is said; the journal may still have to be told.
    async fn end(&mut self, unclosed: Option<PendingClose>) {
        self.live.close();
        if let Some(unclosed) = unclosed {
            self.retry_close(unclosed).boxed().await;
        }
    }

    /// What a run says before its back-end does waits a moment for it: a quick one's first words share its write. Who
    /// comes to listen meanwhile ends no pause. Whoever takes a run over says at once that it is theirs. Returns
    /// whether the server goes on.
    async fn batch_first_events(&mut self, work: &mut PendingOutputs, began: Instant) -> bool {
        let said = work.events.len();
        if said == 0 || self.taken_over {
            return true;
        }
        let pause = Instant::now() + self.first_write_delay;
        while work.events.len() == said && !self.machine.has_ended() {
            match tokio::time::timeout_at(pause, self.wait(work, began)).await {
                Ok(Some(input)) => {
                    self.step(input, began, work);
                    self.drain_ready(work, began);
                }
                Ok(None) => return false,
                Err(_) => break,
            }
        }
        true
    }

    /// Whatever comes first; `None` when the server stops.
    async fn wait(&mut self, work: &mut PendingOutputs, began: Instant) -> Option<Input> {
        let wake = self
            .machine
            .next_wake_ms()
            .map(|ms| began + Duration::from_millis(ms));
        tokio::select! {
            biased;
            () = self.stop.cancelled() => None,
            () = self.live.cancel.cancelled() => Some(Input::Cancel),
            here = self.live.wait_readers_changed() => Some(if here { Input::Joined } else { Input::Left }),
            prepared = next_prepared(&mut work.preparation) => Some(Input::Composition(prepared)),
            input = next_input(&mut work.streams) => Some(input),
            () = sleep_until(wake) => Some(Input::Tick),
        }
    }

    /// Takes events that are there already, so that they share one write. The first words of an answer wait for no
    /// others, the next for few.
    fn drain_ready(&mut self, work: &mut PendingOutputs, began: Instant) {
        let most = work.batch_limit.unwrap_or(limits::BATCH_EVENTS_MAX);
        work.batch_limit = work.batch_limit.map(|share| (share * 4).min(limits::BATCH_EVENTS_MAX));
        for _ in 0..most {
            if self.machine.has_ended() {
                return;
            }
            if work.batch_limit.is_none() && has_words(&work.events) {
                work.batch_limit = Some(4);
                return;
            }
            match next_input(&mut work.streams).now_or_never() {
                Some(input) => self.step(input, began, work),
                None => return,
            }
        }
    }

    fn step(&mut self, input: Input, began: Instant, work: &mut PendingOutputs) {
        let mut outputs = Vec::new();
        let now_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.machine.step(input, now_ms, &mut outputs);
        for output in outputs {
            match output {
                Output::StartAttempt {
                    attempt,
                    member,
                    request,
                } => work
                    .streams
                    .extend(self.call(member, request).map(|events| (attempt, events))),
                Output::StartComposition => work.preparation = self.preparation.take(),
                Output::Mirror { lease, request } => {
                    if let Some(events) = self.call(lease.member(), request) {
                        self.shadows.begin(self.run, lease, self.fleet.clone(), events);
                    }
                }
                Output::CancelAttempt { attempt } => work.streams.retain(|(number, _)| *number != attempt),
                Output::Emit(chunk) => work.events.push(encode(&chunk)),
                Output::Finish { last, code, review } => {
                    work.events.push(encode(&last));
                    work.finish = Some(MachineEnd { code, review });
                }
            }
        }
    }

    /// The dispatch chose a member that can be called; anything else would be a silent attempt.
    fn call(&self, member: usize, request: Arc<Request>) -> Option<EventStream> {
        Some(self.fleet.upstream(member)?.stream_text(request))
    }

    /// Journal first, readers second.
    async fn flush(&mut self, work: &mut PendingOutputs) -> Result<(), JournalError> {
        if work.events.is_empty() {
            return Ok(());
        }
        let events = std::mem::take(&mut work.events);
        match work.finish.take() {
            None => {
                self.journal
                    .append(&self.live.tenant, self.run, self.offset, &events)
                    .await?;
            }
            Some(finish) => self.finish(finish, &events).boxed().await?,
        }
        self.publish(events);
        if work.batch_limit.is_some_and(|share| share < limits::BATCH_EVENTS_MAX) {
            // Whoever listens passes the first words on before more is looked at, even where all of it is there already.
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    async fn finish(&mut self, finish: MachineEnd, events: &[EncodedEvent]) -> Result<(), JournalError> {
        let MachineEnd { code, review } = finish;
        let trace = self.machine.trace();
        let spent = self.spent(&trace);
        let mut end = RunEnd::new(code.clone(), self.clock.now_ms(), spent);
        end.review = review;
        self.close(self.offset, events, end).await?;
        if let Some(code) = &code {
            info!(run = %self.run, code, "a run failed");
        }
        // Whoever sees the end can ask how it came about.
        self.traces.put(&self.live.tenant, Trace { code, ..trace });
        Ok(())
    }

    /// Writes the end. A long one is not kept in memory until the accounts are carried over.
    async fn close(&mut self, after: u64, events: &[EncodedEvent], end: RunEnd) -> Result<(), JournalError> {
        let tenant = &self.live.tenant;
        if self.spooled {
            if let [last] = events
                && last.body.len() <= limits::SPOOLED_EVENT_BYTES_MAX
            {
                let booking = LifecycleRecord::Ended {
                    run: self.run,
                    last: Some(last.clone()),
                    end,
                };
                self.journal.buffer(tenant, booking)?;
                self.crowd.gather().await;
                return self.journal.flush(self.run);
            }
            // Whoever looks for it has it carried over.
            self.journal.find(tenant, self.run).await?;
        }
        self.journal.finish(tenant, self.run, after, events, &end).await
    }

    /// What the run used, attempt by attempt.
    fn spent(&self, trace: &Trace) -> Vec<AttemptUsage> {
        let lost = self.taken_over.then(AttemptUsage::unknown);
        let own = trace.attempts.iter().map(AttemptRecord::usage_row);
        lost.into_iter().chain(own).collect()
    }

    fn publish(&mut self, events: Vec<EncodedEvent>) {
        let entries = (self.offset + 1..).zip(events);
        let entries: Vec<JournalEntry> = entries.map(|(offset, event)| JournalEntry { offset, event }).collect();
        self.offset = entries.last().map_or(self.offset, |entry| entry.offset);
        self.live.publish(entries);
    }

    /// The journal does not take the run's events, so nobody may see them. Readers get an end; the
    /// journal gets it too, now or as soon as it can.
    async fn on_journal_error(&mut self, cause: JournalError) -> Option<PendingClose> {
        if let JournalError::Fenced(_) | JournalError::Ended(_) = cause {
            warn!(run = %self.run, "another server has taken the run over");
            return None;
        }
        error!(run = %self.run, error = %cause, "the journal refused a run's events");
        let body = match cause {
            JournalError::Full => journal_full(),
            _ => ErrorBody::new(Code::E4000, "the journal could not be written"),
        };
        let last = encode(&Chunk::ending(
            &self.run.to_string(),
            Envelope::failure(body.clone()),
            None,
            None,
        ));
        let code = Some(String::from(Code::E4000.as_str()));
        let end = RunEnd::new(code, self.clock.now_ms(), self.spent(&self.machine.trace()));
        let last = vec![last];
        let closed = self.close(self.offset, &last, end.clone()).await;
        let unclosed = closed.err().map(|error| {
            error!(run = %self.run, %error, "the journal could not close the run");
            PendingClose {
                after: self.offset,
                last: last.clone(),
                end,
            }
        });
        match &unclosed {
            Some(_) if self.machine.streams() => self.publish(vec![self.retry_later_event(body)]),
            _ => self.publish(last),
        }
        unclosed
    }

    /// What is not in the journal is not the end of a stream: its readers are told to come back, and then get
    /// the end that the journal has.
    fn retry_later_event(&self, cause: ErrorBody) -> EncodedEvent {
        let mut body = ErrorBody::new(Code::E2010, cause.message);
        body.recoverable = true;
        body.details = cause.details;
        let mut recovery = Recovery::after(0, None);
        recovery.retry_after_ms = limits::JOURNAL_FULL_RETRY_MS;
        let run = self.run.to_string();
        encode(&Chunk::ending(
            &run,
            Envelope::failure(body),
            None,
            Some(&recovery),
        ))
    }

    /// Tries until the journal takes the end, so that the run is not left open and unaccounted for. What
    /// this server does not bring about is left to the next.
    async fn retry_close(&mut self, unclosed: PendingClose) {
        let PendingClose { after, last, end } = unclosed;
        let pause = || tokio::time::sleep(limits::CLOSE_RETRY);
        while self.stop.run_until_cancelled(pause()).await.is_some() {
            match self.close(after, &last, end.clone()).await {
                Err(JournalError::Full | JournalError::Storage(_)) => {}
                Ok(()) | Err(_) => return,
            }
        }
    }
}

/// An end that readers have and the journal has not.
struct PendingClose {
    after: u64,
    last: Vec<EncodedEvent>,
    end: RunEnd,
}

fn has_words(events: &[EncodedEvent]) -> bool {
    events.iter().any(|event| event.kind == EventKind::Chunk)
}

/// What the steps say. They are done when their stream is over.
async fn next_prepared(preparation: &mut Option<CompositionStream>) -> CompositionEvent {
    loop {
        let Some(steps) = preparation else {
            return std::future::pending().await;
        };
        match steps.next().await {
            Some(prepared) => return prepared,
            None => *preparation = None,
        }
    }
}

/// What the first stream that has anything says. A stream that ends is taken off the list.
async fn next_input(streams: &mut Vec<(u32, EventStream)>) -> Input {
    poll_fn(|context| {
        for at in 0..streams.len() {
            let (attempt, events) = &mut streams[at];
            let attempt = *attempt;
            match events.poll_next_unpin(context) {
                Poll::Ready(Some(event)) => return Poll::Ready(Input::Event { attempt, event }),
                Poll::Ready(None) => {
                    drop(streams.remove(at));
                    return Poll::Ready(Input::Ended { attempt });
                }
                Poll::Pending => {}
            }
        }
        Poll::Pending
    })
    .await
}

async fn sleep_until(wake: Option<Instant>) {
    match wake {
        Some(instant) => tokio::time::sleep_until(instant).await,
        None => std::future::pending().await,
    }
}
