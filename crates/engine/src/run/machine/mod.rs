//! A run as a pure state machine: what has happened goes in, what is to be done comes out. No clock, no
//! channel, no task; time is a number of milliseconds since the run began, so a test can live through
//! hours in no time.
//!
//! What it keeps: every numbered chunk continues the one before it; exactly one last chunk, and nothing
//! behind it; a back-end that dies after it was heard is replaced behind a snapshot; of several that are
//! asked at once, one is heard.

mod after;
mod attempt;
mod calls;
mod ending;
mod plan;
mod prepare;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use ir::{Event, Request};
use module::envelope::Envelope;
use module::stream::{Chunk, Progress, Projector};
use serde_json::Value;

pub use after::{Accept, Again, Done, Judge, Next, Selection};
pub use plan::Plan;

use self::attempt::Attempt;
use self::calls::Loss;
use self::prepare::Aside;
use super::command::{Mode, OnDisconnect};
use super::record::{AttemptRecord, Trace};
use super::subscription::opening_meta;
use crate::compose::Prepared;
use crate::fleet::{Dispatch, Lease};
use crate::limits;
use crate::route::Explanation;

/// What has happened.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "one exists at a time, on the stack")]
pub enum Input {
    Start,
    /// The steps before the run's own question said something.
    Prepared(Prepared),
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
    Prepare,
    /// Begin an attempt on this member of the fleet; its events come as inputs.
    Open {
        attempt: u32,
        member: usize,
        request: Arc<Request>,
    },
    /// Send a copy that nobody waits for; it ends by itself.
    Mirror {
        lease: Lease,
        request: Arc<Request>,
    },
    /// Drop the attempt's stream.
    Close {
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
pub struct Machine {
    plan: Plan,
    dispatch: Dispatch,
    /// Why the first plan was what it was, in fleets small enough to tell.
    explanation: Option<Explanation>,
    projector: Projector,
    /// Attempts under way: one, or a few that race for the first token.
    open: Vec<Attempt>,
    /// The one that has spoken; the others are gone by then.
    leader: Option<u32>,
    records: Vec<AttemptRecord>,
    /// Attempts that were begun.
    begun: u32,
    /// When to look for a back-end again.
    waiting_until: Option<u64>,
    /// When to ask another one beside the one that is slow.
    hedge_at: Option<u64>,
    /// The last attempt that was lost.
    loss: Option<Loss>,
    /// The projector holds text of an attempt that is over.
    stale: bool,
    /// When the first text came that may still be buffered.
    unflushed_since: Option<u64>,
    /// An answer that stands if no better one comes.
    standing: Option<(Envelope, Option<Value>)>,
    agains: u32,
    /// The steps are under way.
    preparing: bool,
    aside: Aside,
    /// How far the run has come; it never falls.
    percent: u8,
    audience: Audience,
    ended: bool,
}

impl Machine {
    pub fn new(plan: Plan, dispatch: Dispatch) -> Self {
        let projector = plan.projector();
        Self {
            plan,
            dispatch,
            explanation: None,
            projector,
            open: Vec::new(),
            leader: None,
            records: Vec::new(),
            begun: 0,
            waiting_until: None,
            hedge_at: None,
            loss: None,
            stale: false,
            unflushed_since: None,
            standing: None,
            agains: 0,
            preparing: false,
            aside: Aside::default(),
            percent: 0,
            audience: Audience::Expected,
            ended: false,
        }
    }

    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Every attempt that is over, and what led to it.
    pub fn trace(&self) -> Trace {
        let mut attempts = self.records.clone();
        attempts.sort_by_key(|record| record.number);
        Trace {
            run: self.plan.run,
            module: String::from(self.plan.module.name()),
            policy: self.dispatch.policy().map(|policy| policy.name()),
            seed: self.dispatch.seed(),
            turn: self.dispatch.turn(),
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
            Input::Prepared(prepared) => self.watch(prepared, now_ms, out),
            Input::Event { attempt, event } => self.hear(attempt, event, now_ms, out),
            Input::Ended { attempt } => self.hang_up(attempt, now_ms, out),
            Input::Tick => self.tick(now_ms, out),
            Input::Joined => self.audience = Audience::Here,
            Input::Left => {
                self.audience = Audience::Gone { since_ms: now_ms };
                self.tick(now_ms, out);
            }
            Input::Cancel => self.interrupt("the run was cancelled", now_ms, out),
        }
    }

    /// When the machine wants to be woken if nothing else happens.
    pub fn next_wake_ms(&self) -> Option<u64> {
        if self.ended {
            return None;
        }
        let timeouts = &self.dispatch.fleet().settings().timeouts;
        let attempts = self.open.iter().map(|attempt| attempt.patience_ms(timeouts));
        [
            Some(self.deadline_ms()),
            self.patience_ms(),
            attempts.min(),
            self.waiting_until,
            self.hedge_at,
            self.unflushed_since
                .map(|since| since + self.plan.settings.flush_ms),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn start(&mut self, now_ms: u64, out: &mut Vec<Output>) {
        if self.plan.mode == Mode::Stream {
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
            out.push(Output::Prepare);
            return;
        }
        self.begin(now_ms, out);
    }

    /// Asks the run's own question.
    fn begin(&mut self, now_ms: u64, out: &mut Vec<Output>) {
        if self.dispatch.fleet().candidates().len() <= limits::EXPLAINED_MAX {
            self.explanation = self.dispatch.explain(now_ms).ok();
        }
        if let Some(lease) = self.dispatch.mirror(now_ms) {
            let request = self.dispatch.request().clone();
            out.push(Output::Mirror { lease, request });
        }
        self.advance(None, now_ms, out);
    }

    fn tick(&mut self, now_ms: u64, out: &mut Vec<Output>) {
        if now_ms >= self.deadline_ms() {
            return self.run_out_of_time(now_ms, out);
        }
        if self.patience_ms().is_some_and(|end| now_ms >= end) {
            return self.interrupt("nobody listened any more", now_ms, out);
        }
        self.give_up_the_silent(now_ms, out);
        if self.ended {
            return;
        }
        if self.waiting_until.is_some_and(|until| now_ms >= until) {
            self.waiting_until = None;
            self.advance(None, now_ms, out);
        }
        if self.hedge_at.is_some_and(|at| now_ms >= at) {
            self.hedge(now_ms, out);
        }
        let flush_ms = self.plan.settings.flush_ms;
        if self
            .unflushed_since
            .is_some_and(|since| now_ms >= since + flush_ms)
        {
            self.unflushed_since = None;
            self.emit(out, Projector::flush_idle);
        }
    }

    fn deadline_ms(&self) -> u64 {
        let limit_ms = self.plan.deadline_ms();
        let asked = self.dispatch.request().timeout_ms;
        asked.map_or(limit_ms, |asked| asked.min(limit_ms))
    }

    fn emit(&mut self, out: &mut Vec<Output>, project: impl FnOnce(&mut Projector, &mut Vec<Chunk>)) {
        let mut chunks = Vec::new();
        project(&mut self.projector, &mut chunks);
        out.extend(chunks.into_iter().map(Output::Emit));
    }

    fn progress(&self, stage: &str, message: String, out: &mut Vec<Output>) {
        if self.plan.mode == Mode::Stream && self.plan.progress {
            out.push(Output::Emit(Chunk::Progress(Progress {
                percent: self.percent,
                stage: Some(String::from(stage)),
                message: Some(message),
            })));
        }
    }

    /// Until when the run goes on with nobody there.
    fn patience_ms(&self) -> Option<u64> {
        let grace_ms = self.plan.settings.resume_grace_ms;
        let returns = self.plan.mode == Mode::Stream && self.plan.on_disconnect == OnDisconnect::Keep;
        match self.audience {
            Audience::Here => None,
            Audience::Expected => Some(grace_ms),
            Audience::Gone { since_ms } if returns => Some(since_ms + grace_ms),
            Audience::Gone { since_ms } => Some(since_ms),
        }
    }
}

/// Whether anyone listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Audience {
    /// Nobody has come yet. Whoever started the run is about to.
    Expected,
    Here,
    Gone {
        since_ms: u64,
    },
}
