//! A run as a pure state machine: inputs are events that have happened, outputs are actions to execute. It
//! has no clock, channel or task; time is passed as milliseconds since the start of the run, so tests
//! simulate hours.
//!
//! Invariants: every numbered chunk continues the previous one; there is exactly one terminal chunk, and
//! nothing follows it; a back-end that fails after output is replaced after a snapshot; of concurrent
//! attempts, one is the leader.

mod attempts;
mod backend_warnings;
mod composition;
mod config;
mod finish;
mod reply_policy;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use ir::{Event, Request};
use module::envelope::Envelope;
use module::stream::{Chunk, Progress, Projector};
use serde_json::Value;

pub use config::{MachineConfig, SentProgress};
pub use reply_policy::{AcceptAll, CompletedReply, Reask, ReaskTarget, ReplyDecision, ReplyPolicy};

use self::backend_warnings::BackendWarnings;
use self::composition::StepSummary;
use super::command::{OnDisconnect, RunMode};
use super::record::Trace;
use super::subscription::opening_meta;
use crate::attempts::Attempts;
use crate::compose::CompositionEvent;
use crate::fleet::{BackendSelector, InFlightGuard};

/// What has happened.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "one exists at a time, on the stack")]
pub enum Input {
    Start,
    /// An event of the composition.
    Composition(CompositionEvent),
    /// An event of an open attempt.
    Event {
        attempt: u32,
        event: Event,
    },
    /// The stream of an open attempt has ended.
    Ended {
        attempt: u32,
    },
    /// The time of [`RunMachine::next_wake_ms`] is reached. Earlier ticks are harmless.
    Tick,
    /// There is at least one reader.
    Joined,
    /// The last reader has left.
    Left,
    Cancel,
}

/// An action to execute.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all of them are the large one")]
pub enum Output {
    /// Start the composition; it ends by itself or with the run.
    StartComposition,
    /// Start an attempt on this member of the fleet; its events become inputs.
    StartAttempt {
        attempt: u32,
        member: usize,
        request: Arc<Request>,
    },
    /// Send a mirrored request; it ends by itself.
    Mirror {
        guard: InFlightGuard,
        request: Arc<Request>,
    },
    /// Drop the attempt's stream.
    CancelAttempt {
        attempt: u32,
    },
    Emit(Chunk),
    /// The terminal chunk. `code` is the error code of a failed run.
    Finish {
        last: Box<Chunk>,
        code: Option<String>,
        /// The reason for a review, if one is required.
        review: Option<String>,
    },
}

#[derive(Debug)]
pub struct RunMachine {
    plan: MachineConfig,
    calls: Attempts,
    projector: Projector,
    /// The unmodified text of the leader so far.
    reply: String,
    /// The text of the last failed attempt, for the partial data of a failure.
    failed_reply: String,
    /// Warnings of open attempts, by attempt number.
    notices: BTreeMap<u32, BackendWarnings>,
    /// The projector contains text of an attempt that has ended.
    needs_restart: bool,
    /// When the first text arrived that may still be buffered.
    unflushed_since: Option<u64>,
    /// The answer that is used if a reask yields none.
    fallback: Option<Box<(Envelope, Option<Value>)>>,
    agains: u32,
    /// The composition is running.
    preparing: bool,
    step_summary: Option<Box<StepSummary>>,
    /// Progress; it never decreases, not even after recovery.
    percent: u8,
    audience: Readers,
    ended: bool,
}

impl RunMachine {
    pub fn new(plan: MachineConfig, dispatch: BackendSelector) -> Self {
        let projector = plan.projector();
        let percent = plan.inherited.map_or(0, |sent| sent.percent);
        Self {
            plan,
            calls: Attempts::new(dispatch),
            projector,
            reply: String::new(),
            failed_reply: String::new(),
            notices: BTreeMap::new(),
            needs_restart: false,
            unflushed_since: None,
            fallback: None,
            agains: 0,
            preparing: false,
            step_summary: None,
            percent,
            audience: Readers::Expected,
            ended: false,
        }
    }

    /// Whether clients read it as a stream.
    pub fn streams(&self) -> bool {
        self.plan.mode == RunMode::Stream
    }

    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Every attempt that has ended, and its routing.
    pub fn trace(&self) -> Trace {
        Trace {
            module: String::from(self.plan.module.name()),
            ..self.calls.trace(self.plan.run, self.plan.trace)
        }
    }

    pub fn step(&mut self, input: Input, now_ms: u64, out: &mut Vec<Output>) {
        if self.ended {
            return;
        }
        match input {
            Input::Start => self.start(now_ms, out),
            Input::Composition(prepared) => self.on_composition_event(prepared, now_ms, out),
            Input::Event { attempt, event } => self.on_event(attempt, event, now_ms, out),
            Input::Ended { attempt } => self.on_stream_end(attempt, now_ms, out),
            Input::Tick => self.tick(now_ms, out),
            Input::Joined => self.audience = Readers::Here,
            Input::Left => {
                self.audience = Readers::Gone { since_ms: now_ms };
                self.tick(now_ms, out);
            }
            Input::Cancel => self.finish_cancelled("the run was cancelled", now_ms, out),
        }
    }

    /// Whether a step with this input can apply the module's schemas, which must not happen on a worker of the
    /// runtime.
    pub(crate) fn may_check_reply(&self, input: &Input) -> bool {
        match input {
            Input::Ended { .. } => true,
            Input::Composition(event) => matches!(event, CompositionEvent::Done(_)),
            Input::Tick | Input::Left => self.calls.has_finished_attempt(),
            Input::Start | Input::Event { .. } | Input::Joined | Input::Cancel => false,
        }
    }

    /// When the next tick is due if no other input arrives.
    pub fn next_wake_ms(&self) -> Option<u64> {
        if self.ended {
            return None;
        }
        [
            Some(self.deadline_ms()),
            self.abandon_at_ms(),
            self.calls.next_wake_ms(),
            self.unflushed_since
                .map(|since| since + self.plan.settings.flush_ms),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn start(&mut self, now_ms: u64, out: &mut Vec<Output>) {
        if self.plan.mode == RunMode::Stream {
            if self.plan.preface.opened {
                // The first chunk was sent already.
            } else if self.plan.inherited.is_none() {
                let annotations = self.plan.warnings();
                out.push(Output::Emit(Chunk::Meta {
                    session_id: self.plan.run.to_string(),
                    resume_from_seq: None,
                    meta: opening_meta("run started"),
                    annotations,
                }));
            } else {
                self.emit(out, |projector, chunks| projector.restart(chunks));
            }
        }
        if let Some(body) = self.plan.preface.refused.take() {
            return self.fail(*body, None, out);
        }
        if self.plan.prepares {
            self.preparing = true;
            out.push(Output::StartComposition);
            return;
        }
        self.begin(now_ms, out);
    }

    /// Starts the first attempt of the module's own request.
    fn begin(&mut self, now_ms: u64, out: &mut Vec<Output>) {
        if let Some(guard) = self.calls.start(now_ms) {
            let request = self.calls.request().clone();
            out.push(Output::Mirror { guard, request });
        }
        self.advance(None, now_ms, out);
    }

    fn tick(&mut self, now_ms: u64, out: &mut Vec<Output>) {
        if now_ms >= self.deadline_ms() {
            return self.finish_timed_out(now_ms, out);
        }
        if self.abandon_at_ms().is_some_and(|end| now_ms >= end) {
            return self.finish_cancelled("cancelled: no reader within the grace period", now_ms, out);
        }
        self.expire_attempts(now_ms, out);
        if self.ended {
            return;
        }
        if self.calls.backoff_elapsed(now_ms) {
            self.advance(None, now_ms, out);
        }
        self.hedge(now_ms, out);
        let flush_ms = self.plan.settings.flush_ms;
        if self
            .unflushed_since
            .is_some_and(|since| now_ms >= since + flush_ms)
        {
            self.unflushed_since = None;
            self.emit(out, Projector::flush_idle);
        }
    }

    /// The time of the machine starts after the preface, the time of the run before it.
    fn deadline_ms(&self) -> u64 {
        self.limit_ms().saturating_sub(self.plan.preface.took_ms)
    }

    /// How long the run may take.
    fn limit_ms(&self) -> u64 {
        let limit_ms = self.plan.deadline_ms();
        let requested = self.calls.request().timeout_ms;
        requested.map_or(limit_ms, |requested| requested.min(limit_ms))
    }

    fn emit(&mut self, out: &mut Vec<Output>, project: impl FnOnce(&mut Projector, &mut Vec<Chunk>)) {
        let mut chunks = Vec::new();
        project(&mut self.projector, &mut chunks);
        out.extend(chunks.into_iter().map(Output::Emit));
    }

    fn progress(&self, stage: &str, message: String, out: &mut Vec<Output>) {
        if self.plan.mode == RunMode::Stream && self.plan.progress {
            out.push(Output::Emit(Chunk::Progress(Progress {
                percent: self.percent,
                stage: Some(String::from(stage)),
                message: Some(message),
            })));
        }
    }

    /// When a run without readers is abandoned.
    fn abandon_at_ms(&self) -> Option<u64> {
        let grace_ms = self.plan.settings.resume_grace_ms;
        let returns = self.plan.mode == RunMode::Stream && self.plan.on_disconnect == OnDisconnect::Keep;
        match self.audience {
            Readers::Here => None,
            Readers::Expected => Some(grace_ms),
            Readers::Gone { since_ms } if returns => Some(since_ms + grace_ms),
            Readers::Gone { since_ms } => Some(since_ms),
        }
    }
}

/// Whether the run has readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Readers {
    /// No reader has joined yet; the caller that started the run is expected to.
    Expected,
    Here,
    Gone {
        since_ms: u64,
    },
}
