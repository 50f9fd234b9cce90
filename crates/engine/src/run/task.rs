//! IO driver of a run: waits for the next input, steps the state machine and executes its outputs. Events are
//! journaled before they are published. All decisions are made by the machine.

use std::future::poll_fn;
use std::panic::resume_unwind;
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
use super::machine::{Input, Output, RunMachine};
use super::mirror::MirrorTasks;
use super::record::{AttemptRecord, Trace};
use super::render::encode;
use super::sink::RunSink;
use crate::admission::Permit;
use crate::compose::{CompositionEvent, CompositionStream};
use crate::error::journal_full;
use crate::fleet::Fleet;
use crate::limits;
use crate::port::{AttemptUsage, Clock, EncodedEvent, EventStream, JournalEntry, JournalError, RunEnd};
use crate::schema_threads::SchemaThreads;

#[derive(Debug)]
pub(crate) struct RunTask {
    pub(crate) run: RunId,
    pub(crate) machine: Box<RunMachine>,
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) sink: RunSink,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) live: Arc<RunBroadcast>,
    /// Offset of the last journal entry.
    pub(crate) offset: u64,
    /// The run was started by an earlier server, whose usage is unknown.
    pub(crate) taken_over: bool,
    /// Cancelled when the server stops: the run is left for recovery.
    pub(crate) stop: CancellationToken,
    /// Where the machine checks replies.
    pub(crate) schema_threads: SchemaThreads,
    pub(crate) shadows: MirrorTasks,
    /// The composition, until it is started.
    pub(crate) preparation: Option<CompositionStream>,
    /// Released when the run has ended.
    pub(crate) _permit: Option<Permit>,
}

/// Outputs of the machine that are not flushed yet.
#[derive(Default)]
struct PendingOutputs {
    /// By attempt number.
    streams: Vec<(u32, EventStream)>,
    preparation: Option<CompositionStream>,
    events: Vec<EncodedEvent>,
    finish: Option<MachineEnd>,
}

/// How the machine ended.
struct MachineEnd {
    code: Option<String>,
    review: Option<String>,
}

impl RunTask {
    /// Drives the run to its end, or until the server stops.
    pub(crate) async fn drive(mut self: Box<Self>) -> RunSink {
        let began = Instant::now();
        let mut work = PendingOutputs::default();
        let mut unclosed = None;
        self = self.step(Input::Start, began, &mut work).await;
        // The back-end is called before the journal is written, so that both proceed concurrently.
        self = self.drain_ready(&mut work, began).await;
        loop {
            if let Err(error) = self.flush(&mut work).await {
                unclosed = self.on_journal_error(error).await;
                break;
            }
            if self.machine.has_ended() {
                break;
            }
            let Some(input) = self.wait(&mut work, began).await else {
                break;
            };
            self = self.step(input, began, &mut work).await;
            self = self.drain_ready(&mut work, began).await;
        }
        self.end(unclosed).await;
        self.sink
    }

    /// Closes the broadcast; closing the run in the journal may still have to be retried.
    async fn end(&mut self, unclosed: Option<PendingClose>) {
        self.live.close();
        if let Some(unclosed) = unclosed {
            self.retry_close(unclosed).await;
        }
    }

    /// The next input; `None` when the server stops.
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

    /// Processes events that are available already, so that they share one write.
    async fn drain_ready(mut self: Box<Self>, work: &mut PendingOutputs, began: Instant) -> Box<Self> {
        for _ in 0..limits::BATCH_EVENTS_MAX {
            if self.machine.has_ended() {
                break;
            }
            match next_input(&mut work.streams).now_or_never() {
                Some(input) => self = self.step(input, began, work).await,
                None => break,
            }
        }
        self
    }

    /// A step that may check a reply is moved to a thread for schemas, as a whole.
    async fn step(mut self: Box<Self>, input: Input, began: Instant, work: &mut PendingOutputs) -> Box<Self> {
        let mut outputs = Vec::new();
        let now_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        if self.machine.may_check_reply(&input) {
            let threads = self.schema_threads.clone();
            let step = threads.run(move || {
                self.machine.step(input, now_ms, &mut outputs);
                (self, outputs)
            });
            // A panic of the machine ends this task, wherever the machine ran.
            (self, outputs) = step.await.unwrap_or_else(|panic| resume_unwind(panic));
        } else {
            self.machine.step(input, now_ms, &mut outputs);
        }
        self.execute(outputs, work);
        self
    }

    fn execute(&mut self, outputs: Vec<Output>, work: &mut PendingOutputs) {
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
                Output::Mirror { guard, request } => {
                    if let Some(events) = self.call(guard.member(), request) {
                        self.shadows.begin(self.run, guard, self.fleet.clone(), events);
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

    /// The selector returned a member that can be called; `None` would be an attempt without events.
    fn call(&self, member: usize, request: Arc<Request>) -> Option<EventStream> {
        Some(self.fleet.upstream(member)?.stream(request))
    }

    /// Journals the pending events, then publishes them.
    async fn flush(&mut self, work: &mut PendingOutputs) -> Result<(), JournalError> {
        if work.events.is_empty() {
            return Ok(());
        }
        let events = std::mem::take(&mut work.events);
        match work.finish.take() {
            None => {
                self.sink
                    .append(&self.live.tenant, self.run, self.offset, &events)
                    .await?;
            }
            Some(finish) => self.finish(finish, &events).await?,
        }
        self.publish(events);
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
        // Stored before the terminal event is published, so that its readers find the trace.
        self.sink.put_trace(&self.live.tenant, Trace { code, ..trace });
        Ok(())
    }

    async fn close(&mut self, after: u64, events: &[EncodedEvent], end: RunEnd) -> Result<(), JournalError> {
        let tenant = &self.live.tenant;
        self.sink.finish(tenant, self.run, after, events, end).await
    }

    /// Usage of the run, by attempt.
    fn spent(&self, trace: &Trace) -> Vec<AttemptUsage> {
        let unknown = self.taken_over.then(AttemptUsage::unknown);
        let own = trace.attempts.iter().map(AttemptRecord::usage_row);
        unknown.into_iter().chain(own).collect()
    }

    fn publish(&mut self, events: Vec<EncodedEvent>) {
        let entries = (self.offset + 1..).zip(events);
        let entries: Vec<JournalEntry> = entries
            .map(|(offset, event)| JournalEntry { offset, event })
            .collect();
        self.offset = entries.last().map_or(self.offset, |entry| entry.offset);
        self.live.publish(entries);
    }

    /// Handles events that the journal rejected; they are not published. Readers get a terminal event, which
    /// is journaled too, now or by a later retry.
    async fn on_journal_error(&mut self, cause: JournalError) -> Option<PendingClose> {
        if let JournalError::Fenced(_) | JournalError::Ended(_) = cause {
            warn!(run = %self.run, "run was taken over by another server");
            return None;
        }
        error!(run = %self.run, error = %cause, "journal rejected the events of a run");
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
            error!(run = %self.run, %error, "closing of a run in the journal failed");
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

    /// A terminal event that is not journaled does not end a stream: readers get this error instead, resume
    /// later, and then receive the journaled end.
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

    /// Retries until the journal accepts the end, so that the run is not left open without usage records. If
    /// the server stops first, the run is left for recovery.
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

/// An end that was published but is not journaled yet.
struct PendingClose {
    after: u64,
    last: Vec<EncodedEvent>,
    end: RunEnd,
}

/// The next event of the composition; pending if there is none or its stream has ended.
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

/// The next event of any attempt. A stream that ends is removed.
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
