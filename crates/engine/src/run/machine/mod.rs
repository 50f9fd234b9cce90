//! A run as a pure state machine: what has happened goes in, what is to be done comes out. No clock, no
//! channel, no task; time is a number of milliseconds since the run began, so a test can live through
//! hours in no time.
//!
//! What it keeps: every numbered chunk continues the one before it; exactly one last chunk, and nothing
//! behind it; a back-end that dies after it was heard is replaced behind a snapshot; of several that are
//! asked at once, one is heard.

mod reply_policy;
mod attempts;
mod finish;
mod backend_warnings;
mod config;
mod composition;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use ir::{Event, Request};
use module::envelope::Envelope;
use module::stream::{Chunk, Progress, Projector};
use serde_json::Value;

pub use reply_policy::{AcceptAll, Reask, CompletedReply, ReplyPolicy, ReplyDecision, ReaskTarget};
pub use config::{SentProgress, MachineConfig};

use self::backend_warnings::BackendWarnings;
use self::composition::StepSummary;
use super::command::{RunMode, OnDisconnect};
use super::record::Trace;
use super::subscription::opening_meta;
use crate::attempts::Attempts;
use crate::compose::CompositionEvent;
use crate::fleet::{BackendSelector, InFlightGuard};
use crate::limits;
use crate::route::{Explanation, Policy};

/// What has happened.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "one exists at a time, on the stack")]
pub enum Input {
    Start,
    /// The steps before the run's own question said something.
    Composition(CompositionEvent),
    /// An open attempt said something.
    Event {
        attempt: u32,
        event: Event,
    },
    /// An open attempt's stream is over.
    Ended {
        attempt: u32,
    },
    /// The time that [`Machine::next_wake_ms`] named has come. Earlier ticks do no harm.
    Tick,
    /// At least one reader is there.
    Joined,
    /// The last reader is gone.
    Left,
    Cancel,
}

/// What is to be done.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all of them are the large one")]
pub enum Output {
    /// Begin the steps that come before the run's own question; they end by themselves, or with the run.
    StartComposition,
    /// Begin an attempt on this member of the fleet; its events come as inputs.
    StartAttempt {
        attempt: u32,
        member: usize,
        request: Arc<Request>,
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
    Emit(Chunk),
    /// The last chunk. The code says how a failed run failed.
    Finish {
        last: Box<Chunk>,
        code: Option<String>,
        /// Why a person has to look at it.
        review: Option<String>,
    },
}

#[derive(Debug)]
pub struct RunMachine {
    plan: MachineConfig,
    calls: Attempts,
    /// Why the first plan was what it was, in fleets small enough to tell.
    explanation: Option<Explanation>,
    projector: Projector,
    /// The text so far of the attempt that is heard, word for word.
    reply: String,
    /// The text of the last attempt that was lost, as far as the end may have to speak of it.
    failed_reply: String,
    /// What open attempts have remarked, by their number.
    notices: BTreeMap<u32, BackendWarnings>,
    /// The projector holds text of an attempt that is over.
    needs_restart: bool,
    /// When the first text came that may still be buffered.
    unflushed_since: Option<u64>,
    /// An answer that stands if no better one comes.
    fallback: Option<Box<(Envelope, Option<Value>)>>,
    agains: u32,
    /// The steps are under way.
    preparing: bool,
    step_summary: Option<Box<StepSummary>>,
    /// How far the run has come; it never falls, whichever server says it.
    percent: u8,
    audience: Readers,
    ended: bool,
}

impl RunMachine {
    pub fn new(plan: MachineConfig, dispatch: BackendSelector) -> Self {
        let projector = plan.projector();
        let percent = plan.inherited.map_or(0, |heard| heard.percent);
        Self {
            plan,
            calls: Attempts::new(dispatch),
            explanation: None,
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

    /// Whether clients read it piece by piece.
    pub fn streams(&self) -> bool {
        self.plan.mode == RunMode::Stream
    }

    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Every attempt that is over, and what led to it.
    pub fn trace(&self) -> Trace {
        let dispatch = self.calls.dispatch();
        let mut attempts = self.calls.records().to_vec();
        attempts.sort_by_key(|record| record.number);
        Trace {
            run: self.plan.run,
            module: String::from(self.plan.module.name()),
            operation: dispatch.request().operation(),
            requested_model: dispatch.request().model().map(String::from),
            policy: dispatch.policy().map(Policy::name),
            seed: dispatch.seed(),
            turn: dispatch.turn(),
            order: self.explanation.as_ref().map(|why| why.selected.clone()),
            rejected: self.explanation.as_ref().map(Explanation::reasons),
            parent: self.plan.trace,
            code: None,
            attempts,
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

    /// When the machine wants to be woken if nothing else happens.
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
                // The first chunk is out already.
            } else if self.plan.inherited.is_none() {
                let annotations = self.plan.warnings();
                out.push(Output::Emit(Chunk::Meta {
                    session_id: self.plan.run.to_string(),
                    resume_from_seq: None,
                    meta: opening_meta("the answer is on its way"),
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

    /// Asks the run's own question.
    fn begin(&mut self, now_ms: u64, out: &mut Vec<Output>) {
        let dispatch = self.calls.dispatch_mut();
        if dispatch.fleet().candidates().len() <= limits::EXPLAINED_MAX {
            self.explanation = dispatch.explain(now_ms).ok();
        }
        if let Some(lease) = dispatch.mirror(now_ms) {
            let request = dispatch.request().clone();
            out.push(Output::Mirror { lease, request });
        }
        self.advance(None, now_ms, out);
    }

    fn tick(&mut self, now_ms: u64, out: &mut Vec<Output>) {
        if now_ms >= self.deadline_ms() {
            return self.finish_timed_out(now_ms, out);
        }
        if self.abandon_at_ms().is_some_and(|end| now_ms >= end) {
            return self.finish_cancelled("nobody listened any more", now_ms, out);
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

    /// The machine's time begins behind the preface, the run's does not.
    fn deadline_ms(&self) -> u64 {
        self.limit_ms().saturating_sub(self.plan.preface.took_ms)
    }

    /// How long the run may take.
    fn limit_ms(&self) -> u64 {
        let limit_ms = self.plan.deadline_ms();
        let asked = self.calls.request().timeout_ms;
        asked.map_or(limit_ms, |asked| asked.min(limit_ms))
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

    /// Until when the run goes on with nobody there.
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

/// Whether anyone listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Readers {
    /// Nobody has come yet. Whoever started the run is about to.
    Expected,
    Here,
    Gone {
        since_ms: u64,
    },
}
