//! Reasks that a reply policy requests.

use std::sync::{Arc, Mutex};

use ir::event::FinishReason;
use ir::{ErrorKind, Request};
use module::envelope::Envelope;
use serde_json::json;

use super::{REPLY, Sim, expected_data, is_take_back, plan, request};
use crate::run::command::RunMode;
use crate::run::machine::{CompletedReply, MachineConfig, Reask, ReaskTarget, ReplyDecision, ReplyPolicy};
use crate::run::record::AttemptRole;

/// Reasks a fixed number of times.
#[derive(Debug)]
struct FixedReasks {
    selection: ReaskTarget,
    request: Option<Arc<Request>>,
    left: Mutex<u32>,
}

impl ReplyPolicy for FixedReasks {
    fn evaluate(&self, _: &mut Envelope, done: &CompletedReply<'_>) -> ReplyDecision {
        let mut left = self.left.lock().unwrap();
        assert!(!done.attempts.is_empty() && !done.reply.is_empty());
        if *left == 0 {
            return ReplyDecision::End;
        }
        *left -= 1;
        ReplyDecision::Again(Reask {
            selection: self.selection.clone(),
            reason: String::from("not sure enough"),
            request: self.request.clone(),
        })
    }
}

pub(super) fn judged(selection: ReaskTarget, times: u32) -> MachineConfig {
    MachineConfig {
        reply_policy: Arc::new(FixedReasks {
            selection,
            request: None,
            left: Mutex::new(times),
        }),
        ..plan()
    }
}

#[test]
fn reask_replaces_the_answer_after_a_snapshot() {
    let mut sim = Sim::new(2, judged(ReaskTarget::Named(String::from("b1")), 1));
    sim.text(&REPLY.replace("Wörter", "Worse"));
    sim.finish(FinishReason::Stop);
    assert_eq!(sim.opened, [0, 1]);
    sim.text(REPLY);
    sim.finish(FinishReason::Stop);
    let assembled = sim.assemble();
    assert_eq!(assembled.envelope["data"], expected_data());
    assert_eq!(assembled.envelope["meta"]["model"], "test/m1");
    assert_eq!(sim.chunks.iter().filter(|chunk| is_take_back(chunk)).count(), 1);
    let second = sim.trace().attempts.remove(1);
    assert_eq!(
        (second.role, second.reason.as_deref()),
        (AttemptRole::Reask, Some("not sure enough"))
    );
}

#[test]
fn reask_can_replace_the_request() {
    let mut question = Request::clone(&request());
    question.extra.insert(String::from("asked"), json!(2));
    let plan = MachineConfig {
        reply_policy: Arc::new(FixedReasks {
            selection: ReaskTarget::Same,
            request: Some(Arc::new(question)),
            left: Mutex::new(1),
        }),
        ..plan()
    };
    let mut sim = Sim::new(2, plan);
    sim.text("I would rather not.");
    sim.finish(FinishReason::Stop);
    assert_eq!(sim.opened, [0, 0]);
    assert_eq!(sim.machine.calls.request().extra["asked"], 2);
    sim.text(REPLY);
    sim.finish(FinishReason::Stop);
    assert_eq!(sim.assemble().envelope["data"], expected_data());
}

#[test]
fn failed_reask_falls_back_to_the_first_answer() {
    let mut absent = Sim::new(1, judged(ReaskTarget::Named(String::from("absent")), 1));
    absent.text(REPLY);
    absent.finish(FinishReason::Stop);
    assert_eq!(absent.assemble().envelope["data"], expected_data());

    let mut broken = Sim::new(2, judged(ReaskTarget::Named(String::from("b1")), 1));
    broken.text(REPLY);
    broken.finish(FinishReason::Stop);
    broken.text("{\"ok\":true,\"data\":{\"rationale\":\"half");
    broken.fail(ErrorKind::Network);
    assert_eq!(broken.finishes, [None]);
    assert_eq!(broken.assemble().envelope["data"], expected_data());

    let mut slow = Sim::new(2, judged(ReaskTarget::Any, 1));
    slow.text(REPLY);
    slow.finish(FinishReason::Stop);
    while slow.finishes.is_empty() {
        slow.pass(10_000);
        slow.text(" ");
    }
    assert_eq!(slow.now_ms, 300_000);
    assert_eq!(slow.assemble().envelope["data"], expected_data());
}

#[test]
fn number_of_reasks_is_bounded() {
    let mut sim = Sim::new(1, judged(ReaskTarget::Any, u32::MAX));
    while sim.finishes.is_empty() {
        sim.text(REPLY);
        sim.finish(FinishReason::Stop);
    }
    assert_eq!(sim.opened.len(), 1 + crate::limits::REASKS_MAX as usize);
}

#[test]
fn copied_prompt_text_is_reasked_once() {
    let manifest = "name: m\nversion: 1.0.0\nresponsibility: r\ntier: decision\nresponse:\n  mode: both\n";
    let files: module::FileMap = [
        ("module.yaml", String::from(manifest)),
        (
            "prompt.md",
            String::from("Say it like this: \"The message is about money.\"\n"),
        ),
        ("schema.json", String::from("{\"data\": {\"type\": \"object\"}}")),
    ]
    .into_iter()
    .collect();
    let module = Arc::new(module::load(&files).module.unwrap());
    let plan = MachineConfig {
        reply_policy: Arc::new(crate::gate::GateEvaluator::new(module.clone(), None)),
        module,
        ..plan()
    };
    let copied = r#"{"ok":true,"meta":{"confidence":0.9,"risk":"low","explain":"e"},"data":{"rationale":"The message is about money."}}"#;
    let mut twice = Sim::new(1, plan.clone());
    for _ in 0..2 {
        twice.text(copied);
        twice.finish(FinishReason::Stop);
    }
    assert_eq!(twice.opened, [0, 0]);
    assert_eq!(twice.finishes, [Some(String::from("E3001"))]);
    let error = &twice.assemble().envelope["error"];
    assert_eq!(error["details"]["reason"], "echo");
    assert_eq!(error["details"]["errors"][0]["pointer"], "/data/rationale");

    let mut once = Sim::new(1, plan);
    once.text(copied);
    once.finish(FinishReason::Stop);
    once.text(REPLY);
    once.finish(FinishReason::Stop);
    assert_eq!(once.finishes, [None]);
    assert_eq!(once.assemble().envelope["data"], expected_data());
}

#[test]
fn repeated_text_ends_the_attempt_and_is_reasked_once() {
    for mode in [RunMode::Stream, RunMode::Sync] {
        let mut sim = Sim::new(
            1,
            MachineConfig {
                mode,
                reply_policy: Arc::new(crate::gate::GateEvaluator::new(super::module(), None)),
                ..plan()
            },
        );
        for attempt in 1..=2 {
            sim.text("{\"ok\":true,\"data\":{\"rationale\":\"");
            // Four tokens, so that 64 of them are 256 tokens.
            for _ in 0..63 {
                sim.text("and so on, ");
            }
            assert_eq!((sim.opened.len(), sim.finishes.len()), (attempt, 0), "{mode:?}");
            sim.text("and so on, ");
        }
        assert_eq!(sim.opened, [0, 0]);
        assert_eq!(sim.finishes, [Some(String::from("E2012"))]);
        // The second request does not show the repeated text.
        let second = serde_json::to_string(&sim.requests[1]).unwrap();
        assert!(
            second.contains("repeats the same text in `rationale`") && !second.contains("so on"),
            "{second}"
        );
    }
}
