//! How a run ends: with a valid answer, an invalid one, or an error of the runtime. Exactly one terminal
//! chunk is emitted here.

use ir::Error;
use ir::event::FinishReason;
use module::Code;
use module::envelope::{CheckOptions, Envelope, ErrorBody, RuntimeMeta, check_reply};
use module::stream::{Chunk, Recovery};
use serde_json::{Map, Value};

use super::reply_policy::{CompletedReply, ReplyDecision};
use super::{Output, RunMachine};
use crate::attempts::CompletedAttempt;
use crate::gate::REVIEW_KEY;
use crate::limits;
use crate::run::command::{RunMode, warnings_annotation};
use crate::run::failure;
use crate::run::record::AttemptOutcome;

impl RunMachine {
    /// The attempt has given a complete answer.
    pub(super) fn complete(&mut self, number: u32, now_ms: u64, out: &mut Vec<Output>) {
        self.complete_with(None, number, now_ms, out);
    }

    /// The model repeats itself: the attempt ends, and what it has written is no answer.
    pub(super) fn finish_repetition(&mut self, number: u32, now_ms: u64, out: &mut Vec<Output>) {
        let field = self.repetition.field();
        let message = format!("the model repeats the same text in `{field}`");
        let error = ErrorBody::new(Code::E2012, message).detail("field", field);
        self.complete_with(Some(error), number, now_ms, out);
    }

    fn complete_with(&mut self, refused: Option<ErrorBody>, number: u32, now_ms: u64, out: &mut Vec<Output>) {
        let Some(won) = self.calls.complete(number, now_ms) else {
            return;
        };
        out.push(Output::CancelAttempt { attempt: number });
        let member = won.member;
        let reply = std::mem::take(&mut self.reply);
        let mut envelope = match refused {
            Some(error) => failure::failure(error, self.partial(Some(&reply))),
            None => self.check(&won, &reply, now_ms),
        };
        let done = CompletedReply {
            request: self.calls.request(),
            reply: &reply,
            attempts: self.calls.records(),
            reasks: self.agains,
        };
        let next = self.plan.reply_policy.evaluate(&mut envelope, &done);
        let notices = self.notices.remove(&number).unwrap_or_default();
        add_warnings(&mut envelope.annotations, notices.annotations());
        let usage = won.usage.as_ref().map(failure::usage_value);
        match next {
            ReplyDecision::Again(again) if self.agains < limits::REASKS_MAX => {
                self.agains += 1;
                self.fallback = Some(Box::new((envelope, usage)));
                self.needs_restart = true;
                let only = match &again.selection {
                    super::ReaskTarget::Named(name) => Some(name.clone()),
                    _ => None,
                };
                self.failed_reply.clear();
                self.calls.restart(again.request, only);
                self.reask(&again.selection, member, again.reason, now_ms, out);
            }
            _ => self.finish_with(envelope, usage, out),
        }
    }

    /// Checks a complete reply.
    fn check(&mut self, won: &CompletedAttempt, reply: &str, now_ms: u64) -> Envelope {
        let media = self.plan.preface.media.as_deref();
        let facts = RuntimeMeta {
            model: Some(self.label(won.member, won.model.as_deref())),
            processing_time_ms: Some(now_ms + self.plan.preface.took_ms),
            media_processed: media.map(|media| media.processed.clone()),
            media_validation: media.map(|media| media.validation.clone()),
            ..RuntimeMeta::default()
        };
        let outcome = check_reply(
            &self.plan.module,
            reply.as_bytes(),
            &CheckOptions {
                facts,
                request: Some(self.calls.request().clone()),
            },
        );
        let mut envelope = outcome.envelope;
        if !envelope.is_ok() && won.finish == Some(FinishReason::Length) {
            let body = ErrorBody::new(Code::E2003, "the model stopped at its token limit");
            envelope = failure::failure(body, self.partial(Some(reply)));
        }
        envelope
    }

    /// No back-end is left. The fallback answer is used if there is one.
    pub(super) fn finish_exhausted(&mut self, search: Error, out: &mut Vec<Output>) {
        if let Some(standing) = self.fallback.take() {
            let (envelope, usage) = *standing;
            return self.finish_with(envelope, usage, out);
        }
        // The error of the last back-end is more specific than the failed search.
        let error = self.calls.take_last_error().unwrap_or(search);
        let reply = std::mem::take(&mut self.failed_reply);
        let body =
            failure::from_upstream_error(&error, !reply.is_empty(), self.plan.mode, &self.plan.settings);
        self.fail(body, Some(&reply), out);
    }

    pub(super) fn finish_timed_out(&mut self, now_ms: u64, out: &mut Vec<Output>) {
        let reply = self.cancel_attempts(AttemptOutcome::Cancelled, now_ms, out);
        if let Some(standing) = self.fallback.take() {
            let (envelope, usage) = *standing;
            return self.finish_with(envelope, usage, out);
        }
        let limit_ms = self.limit_ms();
        let code = match self.plan.mode {
            RunMode::Sync => Code::E2002,
            RunMode::Stream => Code::E2011,
        };
        let body =
            ErrorBody::new(code, format!("timed out after {limit_ms} ms")).detail("allowed_ms", limit_ms);
        let reply = reply.unwrap_or_else(|| std::mem::take(&mut self.failed_reply));
        self.fail(body, Some(&reply), out);
    }

    pub(super) fn finish_cancelled(&mut self, message: &str, now_ms: u64, out: &mut Vec<Output>) {
        let reply = self.cancel_attempts(AttemptOutcome::Cancelled, now_ms, out);
        self.fail(ErrorBody::new(Code::E2010, message), reply.as_deref(), out);
    }

    /// The model called a tool that the module does not allow: it is not executed, and no other model is
    /// tried.
    pub(super) fn finish_tool_denied(&mut self, tool: &str, now_ms: u64, out: &mut Vec<Output>) {
        let reply = self.cancel_attempts(AttemptOutcome::Cancelled, now_ms, out);
        let message = format!("the model called the tool `{tool}`, which the module does not allow");
        let body = ErrorBody::new(Code::E4007, message)
            .suggest("list it under tools.allowed in module.yaml, or make the prompt forbid it")
            .detail("tool", tool);
        self.fail(body, reply.as_deref(), out);
    }

    /// Ends with an error of the runtime and the partial data.
    pub(super) fn fail(&mut self, body: ErrorBody, reply: Option<&str>, out: &mut Vec<Output>) {
        let partial = self.partial(reply);
        self.end(failure::failure(body, partial), None, out);
    }

    fn partial(&mut self, reply: Option<&str>) -> Option<Map<String, Value>> {
        if self.plan.mode == RunMode::Sync
            && let Some(reply) = reply
        {
            self.projector.push_text(reply, &mut Vec::new());
        }
        let partial = self.projector.partial_data();
        let allowed = self.plan.module.manifest.failure.partial_allowed;
        (allowed && !partial.is_empty()).then_some(partial)
    }

    /// Ends with a checked envelope: the streamed data is completed to its data.
    pub(super) fn finish_with(&mut self, envelope: Envelope, usage: Option<Value>, out: &mut Vec<Output>) {
        if self.plan.mode == RunMode::Stream
            && let Some(data) = envelope.data()
        {
            self.emit(out, |projector, chunks| projector.finish(data, chunks));
        }
        self.end(envelope, usage, out);
    }

    pub(super) fn end(&mut self, mut envelope: Envelope, usage: Option<Value>, out: &mut Vec<Output>) {
        let usage = self.merge_step_summary(&mut envelope, usage);
        let review = review(&envelope);
        let code = envelope.error().map(|error| error.code.clone());
        if self.plan.mode == RunMode::Sync {
            add_warnings(&mut envelope.annotations, self.plan.warnings());
        }
        if let Some(trace) = self.plan.trace {
            let trace_id = Value::from(trace.trace_id());
            envelope.meta.more.insert(String::from("trace_id"), trace_id);
        }
        add_warnings(
            &mut envelope.annotations,
            warnings_annotation(&self.plan.preface.warnings),
        );
        let recovery = self.recovery(code.as_deref());
        // Only an error chunk carries the run id.
        let run = match code {
            Some(_) => self.plan.run.to_string(),
            None => String::new(),
        };
        let last = Chunk::ending(&run, envelope, usage, recovery.as_ref());
        out.push(Output::Finish {
            last: Box::new(last),
            code,
            review,
        });
        self.ended = true;
    }

    /// Only an interrupted stream has a resume point.
    fn recovery(&self, code: Option<&str>) -> Option<Recovery> {
        let interrupted = [Code::E2010, Code::E2011]
            .iter()
            .any(|known| code == Some(known.as_str()));
        if self.plan.mode == RunMode::Sync || !interrupted {
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

    /// `provider/model`, with the model named in the response if there is one.
    fn label(&self, member: usize, model: Option<&str>) -> String {
        let candidate = &self.calls.dispatch().fleet().candidates()[member];
        let model = model.or(candidate.model.as_deref()).unwrap_or(&candidate.name);
        format!("{}/{model}", candidate.kind)
    }
}

pub(super) fn add_warnings(annotations: &mut Map<String, Value>, warnings: Map<String, Value>) {
    for (key, value) in warnings {
        match (annotations.get_mut(&key), value) {
            (Some(Value::Array(known)), Value::Array(more)) => known.extend(more),
            (_, value) => {
                annotations.insert(key, value);
            }
        }
    }
}

/// The reasons for a review, if the gate requires one.
fn review(envelope: &Envelope) -> Option<String> {
    let reasons = envelope.annotations.get(REVIEW_KEY)?.get("reasons")?.as_array()?;
    let reasons: Vec<&str> = reasons.iter().filter_map(Value::as_str).collect();
    Some(reasons.join("; "))
}
