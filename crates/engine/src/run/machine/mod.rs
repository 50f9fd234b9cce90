//! A run as a pure state machine: what has happened goes in, what is to be done comes out. No clock, no
//! channel, no task; time is a number of milliseconds since the run began, so a test can live through
//! hours in no time.
//!
//! What it keeps: every numbered chunk continues the one before it; exactly one last chunk, and nothing
//! behind it; a back-end that dies after it was heard is replaced behind a snapshot.

mod attempt;
mod plan;
#[cfg(test)]
mod tests;

use ir::error::{Phase, RetryScope};
use ir::event::{Delta, FinishReason};
use ir::{ErrorKind, Event};
use module::Code;
use module::envelope::{CheckOptions, Envelope, ErrorBody, Facts, check_reply};
use module::stream::{Chunk, Progress, Projector, Recovery};
use serde_json::{Map, Value};

pub use plan::Plan;

use self::attempt::Attempt;
use super::command::{Mode, OnDisconnect};
use super::subscription::opening_meta;
use super::verdict;
use crate::limits;

/// What has happened.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "one exists at a time, on the stack")]
pub enum Input {
    Start,
    /// The open attempt said something.
    Event(Event),
    /// The open attempt's stream is over.
    Ended,
    /// The time that [`Machine::next_wake_ms`] named has come. Earlier ticks do no harm.
    Tick,
    /// At least one reader is there.
    Joined,
    /// The last reader is gone.
    Left,
    Cancel,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "nearly all of them are the large one")]
pub enum Output {
    /// Begin an attempt on the back-end at this place of the plan; its events come as inputs.
    Open {
        backend: usize,
    },
    /// Drop the attempt's stream.
    Close,
    Emit(Chunk),
    /// The last chunk. The code says how a failed run failed.
    Finish {
        last: Box<Chunk>,
        code: Option<String>,
    },
}

#[derive(Debug)]
pub struct Machine {
    plan: Plan,
    projector: Projector,
    attempt: Option<Attempt>,
    attempts: u32,
    audience: Audience,
    ended: bool,
}

impl Machine {
    pub fn new(plan: Plan) -> Self {
        let projector = plan.projector();
        Self {
            plan,
            projector,
            attempt: None,
            attempts: 0,
            audience: Audience::Expected,
            ended: false,
        }
    }

    pub fn has_ended(&self) -> bool {
        self.ended
    }

    pub fn step(&mut self, input: Input, now_ms: u64, out: &mut Vec<Output>) {
        if self.ended {
            return;
        }
        match input {
            Input::Start => self.start(now_ms, out),
            Input::Event(event) => self.hear(event, now_ms, out),
            Input::Ended => self.hang_up(now_ms, out),
            Input::Tick => self.tick(now_ms, out),
            Input::Joined => self.audience = Audience::Here,
            Input::Left => {
                self.audience = Audience::Gone { since_ms: now_ms };
                self.tick(now_ms, out);
            }
            Input::Cancel => self.interrupt("the run was cancelled", out),
        }
    }

    /// When the machine wants to be woken if nothing else happens.
    pub fn next_wake_ms(&self) -> Option<u64> {
        if self.ended {
            return None;
        }
        let attempt = self.attempt.as_ref();
        [
            Some(self.plan.deadline_ms()),
            self.patience_ms(),
            attempt.map(|attempt| attempt.heard_ms + self.plan.settings.upstream_idle_ms),
            attempt
                .and_then(|attempt| attempt.unflushed_since)
                .map(|since| since + self.plan.settings.flush_ms),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn start(&mut self, now_ms: u64, out: &mut Vec<Output>) {
        if self.plan.mode == Mode::Stream {
            if self.plan.inherited.is_none() {
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
        self.open_next(0, now_ms, out);
    }

    fn open_next(&mut self, backend: usize, now_ms: u64, out: &mut Vec<Output>) {
        if self.plan.backends.len() <= backend {
            let error = ErrorBody::new(Code::E4001, "no back-end is configured");
            self.end(Envelope::failure(error), None, out);
            return;
        }
        self.attempts += 1;
        self.attempt = Some(Attempt::new(backend, now_ms));
        if self.plan.mode == Mode::Stream && self.plan.progress {
            out.push(Output::Emit(Chunk::Progress(Progress {
                percent: 0,
                stage: Some(String::from("attempt")),
                message: Some(format!("attempt {}", self.attempts)),
            })));
        }
        out.push(Output::Open { backend });
    }

    fn hear(&mut self, event: Event, now_ms: u64, out: &mut Vec<Output>) {
        let Some(attempt) = &mut self.attempt else { return };
        attempt.heard_ms = now_ms;
        match event {
            Event::Started { model, .. } => attempt.model = model,
            Event::BlockDelta {
                delta: Delta::Text { text },
                ..
            } => {
                if attempt.reply.len() + text.len() > limits::REPLY_BYTES_MAX {
                    let message = "the reply is longer than allowed";
                    let error = ir::Error::new(ErrorKind::InvalidResponse, Phase::MidStream, message);
                    return self.lose(&error, now_ms, out);
                }
                attempt.reply.push_str(&text);
                if self.plan.mode == Mode::Stream {
                    attempt.unflushed_since.get_or_insert(now_ms);
                    self.emit(out, |projector, chunks| projector.push_text(&text, chunks));
                }
            }
            Event::Usage { usage } => attempt.usage = Some(usage),
            Event::Finish { reason } => attempt.finish = Some(reason),
            Event::Error { error } => self.lose(&error, now_ms, out),
            Event::BlockStart { .. }
            | Event::BlockDelta { .. }
            | Event::BlockEnd { .. }
            | Event::Meta { .. }
            | Event::Warning { .. }
            | Event::Foreign { .. } => {}
        }
    }

    /// A stream that ends behind its finish is complete; any other was cut.
    fn hang_up(&mut self, now_ms: u64, out: &mut Vec<Output>) {
        let Some(attempt) = &self.attempt else { return };
        if attempt.finish.is_some() {
            self.complete(now_ms, out);
        } else {
            let message = "the back-end broke off its answer";
            let error = ir::Error::new(ErrorKind::Network, Phase::MidStream, message);
            self.lose(&error, now_ms, out);
        }
    }

    /// The attempt is lost: go on elsewhere, or end.
    fn lose(&mut self, error: &ir::Error, now_ms: u64, out: &mut Vec<Output>) {
        let Some(attempt) = self.attempt.take() else {
            return;
        };
        out.push(Output::Close);
        let next = attempt.backend + 1;
        let elsewhere = next < self.plan.backends.len() && self.attempts < limits::ATTEMPTS_MAX;
        // A request that is wrong in itself is wrong everywhere.
        if elsewhere && error.retry_scope() != RetryScope::Never {
            if self.plan.mode == Mode::Stream && !attempt.reply.is_empty() {
                self.emit(out, |projector, chunks| projector.restart(chunks));
            }
            return self.open_next(next, now_ms, out);
        }
        let body = verdict::exhausted(
            error,
            !attempt.reply.is_empty(),
            self.plan.mode,
            &self.plan.settings,
        );
        self.fail(body, Some(&attempt.reply), out);
    }

    fn complete(&mut self, now_ms: u64, out: &mut Vec<Output>) {
        let Some(attempt) = self.attempt.take() else {
            return;
        };
        out.push(Output::Close);
        let facts = Facts {
            model: Some(self.plan.label(attempt.backend, attempt.model.as_deref())),
            processing_time_ms: Some(now_ms),
            ..Facts::default()
        };
        let outcome = check_reply(
            &self.plan.module,
            attempt.reply.as_bytes(),
            &CheckOptions { facts },
        );
        let envelope = outcome.envelope;
        if !envelope.is_ok() && attempt.finish == Some(FinishReason::Length) {
            let body = ErrorBody::new(Code::E2003, "the model stopped at its token limit");
            return self.fail(body, Some(&attempt.reply), out);
        }
        if self.plan.mode == Mode::Stream
            && let Some(data) = envelope.data()
        {
            self.emit(out, |projector, chunks| projector.finish(data, chunks));
        }
        let usage = attempt.usage.as_ref().map(verdict::usage_value);
        self.end(envelope, usage, out);
    }

    fn tick(&mut self, now_ms: u64, out: &mut Vec<Output>) {
        if now_ms >= self.plan.deadline_ms() {
            let limit_ms = self.plan.deadline_ms();
            let code = match self.plan.mode {
                Mode::Sync => Code::E2002,
                Mode::Stream => Code::E2011,
            };
            let body =
                ErrorBody::new(code, format!("no end after {limit_ms} ms")).detail("allowed_ms", limit_ms);
            let reply = self.attempt.take().map(|attempt| attempt.reply);
            out.push(Output::Close);
            return self.fail(body, reply.as_deref(), out);
        }
        if self.patience_ms().is_some_and(|end| now_ms >= end) {
            return self.interrupt("nobody listened any more", out);
        }
        let Some(attempt) = &mut self.attempt else { return };
        if now_ms >= attempt.heard_ms + self.plan.settings.upstream_idle_ms {
            if attempt.finish.is_some() {
                return self.complete(now_ms, out);
            }
            let error = ir::Error::new(ErrorKind::Timeout, Phase::MidStream, "the back-end fell silent");
            return self.lose(&error, now_ms, out);
        }
        let flush_ms = self.plan.settings.flush_ms;
        if attempt
            .unflushed_since
            .is_some_and(|since| now_ms >= since + flush_ms)
        {
            attempt.unflushed_since = None;
            self.emit(out, Projector::flush_idle);
        }
    }

    fn interrupt(&mut self, message: &str, out: &mut Vec<Output>) {
        let reply = self.attempt.take().map(|attempt| attempt.reply);
        out.push(Output::Close);
        self.fail(ErrorBody::new(Code::E2010, message), reply.as_deref(), out);
    }

    /// Ends with an error of the runtime's own and with what there is of the data.
    fn fail(&mut self, body: ErrorBody, reply: Option<&str>, out: &mut Vec<Output>) {
        if self.plan.mode == Mode::Sync
            && let Some(reply) = reply
        {
            self.projector.push_text(reply, &mut Vec::new());
        }
        let partial = self.projector.partial_data();
        let partial_allowed = self.plan.module.manifest.failure.partial_allowed;
        let partial = (partial_allowed && !partial.is_empty()).then_some(partial);
        self.end(verdict::failure(body, partial), None, out);
    }

    fn end(&mut self, mut envelope: Envelope, usage: Option<Value>, out: &mut Vec<Output>) {
        let code = envelope.error().map(|error| error.code.clone());
        if self.plan.mode == Mode::Sync {
            add_warnings(&mut envelope.annotations, self.plan.warnings());
        }
        let recovery = self.recovery(code.as_deref());
        let run = self.plan.run.to_string();
        let last = Chunk::ending(&run, envelope, usage, recovery.as_ref());
        out.push(Output::Finish {
            last: Box::new(last),
            code,
        });
        self.ended = true;
    }

    /// Only a stream that broke off has a place to go on from.
    fn recovery(&self, code: Option<&str>) -> Option<Recovery> {
        let broke_off = [Code::E2010, Code::E2011]
            .iter()
            .any(|known| code == Some(known.as_str()));
        if self.plan.mode == Mode::Sync || !broke_off {
            return None;
        }
        let mut recovery = Recovery::after(
            self.projector.last_seq(),
            self.projector.last_checkpoint().cloned(),
        );
        recovery.retry_after_ms = self.plan.settings.retry_after_ms;
        recovery.max_retries = self.plan.settings.max_retries;
        Some(recovery)
    }

    fn emit(&mut self, out: &mut Vec<Output>, project: impl FnOnce(&mut Projector, &mut Vec<Chunk>)) {
        let mut chunks = Vec::new();
        project(&mut self.projector, &mut chunks);
        out.extend(chunks.into_iter().map(Output::Emit));
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

fn add_warnings(annotations: &mut Map<String, Value>, warnings: Map<String, Value>) {
    for (key, value) in warnings {
        match (annotations.get_mut(&key), value) {
            (Some(Value::Array(known)), Value::Array(more)) => known.extend(more),
            (_, value) => {
                annotations.insert(key, value);
            }
        }
    }
}
