//! The state machine of a relayed call in simulated time: the test supplies the events of the back-ends.

mod buffering;
mod truncation;

use std::sync::Arc;

use bytes::Bytes;
use ir::event::FinishReason;
use ir::operation::Feature;
use ir::{
    Block, ChatRequest, Error, ErrorKind, Event, Message, Phase, Request, ResponseFormat, Role as Speaker,
    RunId, Usage,
};

use super::machine::{Input, Output, RelayConfig, RelayMachine};
use super::{RelayPart, continuation};
use crate::fleet::test_fleet::{members, with_policy};
use crate::fleet::{BackendSelector, Fleet, Settings};
use crate::port::{RawChunk, RawItem};
use crate::route::{HostPolicy, Policy};
use crate::run::{AttemptOutcome, AttemptRole};

/// The complete text of every back-end, from the start.
const WHOLE: &str = "Grüße, 世界!  Two  spaces,\n\na tab\tand an end. ";

struct Sim {
    machine: RelayMachine,
    now_ms: u64,
    /// Open attempts with their requests.
    open: Vec<(u32, usize, Arc<Request>)>,
    opened: Vec<usize>,
    verbatim: Vec<bool>,
    parts: Vec<RelayPart>,
}

impl Sim {
    fn new(fleet: &Arc<Fleet>, request: Request) -> Self {
        let dispatch = BackendSelector::new(fleet.clone(), Arc::new(request), 7, 0);
        let plan = RelayConfig {
            run: RunId::from_parts(1, 7),
            trace: None,
        };
        let mut sim = Self {
            machine: RelayMachine::new(plan, dispatch),
            now_ms: 0,
            open: Vec::new(),
            opened: Vec::new(),
            verbatim: Vec::new(),
            parts: Vec::new(),
        };
        sim.step(Input::Start);
        sim
    }

    fn step(&mut self, input: Input) {
        let mut outputs = Vec::new();
        self.machine.step(input, self.now_ms, &mut outputs);
        for output in outputs {
            match output {
                Output::StartAttempt {
                    attempt,
                    member,
                    request,
                    verbatim,
                } => {
                    self.open.push((attempt, member, request));
                    self.opened.push(member);
                    self.verbatim.push(verbatim);
                }
                Output::CancelAttempt { attempt } => self.open.retain(|(number, ..)| *number != attempt),
                Output::Emit(part) => self.parts.push(part),
                Output::Mirror { .. } | Output::Answer(_) => {}
            }
        }
    }

    fn latest(&self) -> u32 {
        self.open.last().unwrap().0
    }

    fn say(&mut self, event: Event) {
        self.say_to(self.latest(), event);
    }

    fn say_to(&mut self, attempt: u32, event: Event) {
        let said = RawItem::Event(event);
        self.step(Input::Received { attempt, said });
    }

    /// The same as raw bytes: each event is one byte long.
    fn piece(&mut self, event: Event) {
        let said = RawItem::Chunk(RawChunk {
            bytes: Bytes::from_static(b"."),
            events: vec![event],
        });
        let attempt = self.latest();
        self.step(Input::Received { attempt, said });
    }

    fn finish(&mut self) {
        let attempt = self.latest();
        self.say(Event::Finish {
            reason: FinishReason::Stop,
        });
        self.step(Input::Ended { attempt });
    }

    fn cut(&mut self) {
        let attempt = self.latest();
        self.step(Input::Ended { attempt });
    }

    fn fail(&mut self, kind: ErrorKind) {
        self.say(Event::Error { error: error(kind) });
    }

    /// Advances the clock and delivers every tick on time.
    fn pass(&mut self, ms: u64) {
        let end_ms = self.now_ms + ms;
        while let Some(wake_ms) = self.machine.next_wake_ms().filter(|wake_ms| *wake_ms <= end_ms) {
            self.now_ms = wake_ms.max(self.now_ms);
            self.step(Input::Tick);
            if self.machine.next_wake_ms() == Some(wake_ms) {
                break;
            }
        }
        self.now_ms = end_ms;
    }

    /// The caller's events. After a replay, the replayed events replace the earlier ones.
    fn events(&self) -> Vec<Event> {
        let mut events = Vec::new();
        for part in &self.parts {
            match part {
                RelayPart::Raw(piece) => events.extend(piece.events.clone()),
                RelayPart::Event(event) => events.push(event.clone()),
                RelayPart::Replay(so_far) => assert_eq!(text(so_far), text(&events)),
            }
        }
        events
    }

    fn outcomes(&self) -> Vec<AttemptOutcome> {
        self.machine
            .trace()
            .attempts
            .iter()
            .map(|one| one.outcome)
            .collect()
    }
}

fn text(events: &[Event]) -> String {
    let mut fold = ir::fold::Fold::new();
    for event in events {
        if !matches!(event, Event::Error { .. }) {
            fold.push(event.clone());
        }
    }
    fold.finish().unwrap().text()
}

fn count(events: &[Event], is: fn(&Event) -> bool) -> usize {
    events.iter().filter(|event| is(event)).count()
}

fn is_finish(event: &Event) -> bool {
    matches!(event, Event::Finish { .. })
}

fn is_error(event: &Event) -> bool {
    matches!(event, Event::Error { .. })
}

fn error(kind: ErrorKind) -> Error {
    Error::new(kind, Phase::MidStream, "connection lost")
}

fn started() -> Event {
    Event::Started {
        id: Some(String::from("chatcmpl-1")),
        model: Some(String::from("m")),
        created: None,
    }
}

fn block(index: u32) -> Event {
    let block = Block::Text;
    Event::BlockStart { index, block }
}

fn streaming() -> Request {
    let mut chat = ChatRequest {
        messages: vec![Message::text(Speaker::User, "hello")],
        ..ChatRequest::default()
    };
    chat.generation.stream = Some(true);
    Request::chat("req", chat)
}

fn changed(change: impl FnOnce(&mut ChatRequest)) -> Request {
    let mut request = streaming();
    let ir::envelope::Payload::Chat(chat) = &mut request.payload else {
        unreachable!();
    };
    change(chat);
    request
}

/// In order, without retries on the same instance; those from `from` on continue a prefix.
fn continuing(count: usize, from: usize) -> Arc<Fleet> {
    let mut settings = Settings::default();
    settings.retry.same_max = 0;
    let mut list = members(count);
    for (place, member) in list.iter_mut().enumerate() {
        member.candidate.priority = -i32::try_from(place).unwrap();
        if place >= from {
            member.candidate.features.insert(Feature::Prefill);
        }
    }
    let host = HostPolicy {
        policy: Some(Policy::Priority),
        ..HostPolicy::default()
    };
    Arc::new(Fleet::new(list, host, settings))
}

/// The continuation of a back-end, given its request.
fn rest_of(request: &Request) -> &'static str {
    let last = request.as_chat().unwrap().messages.last().unwrap();
    match last.role {
        Speaker::Assistant => WHOLE.strip_prefix(last.plain_text().unwrap()).unwrap(),
        _ => WHOLE,
    }
}

#[test]
fn fails_over_until_the_first_output() {
    let mut sim = Sim::new(&continuing(3, 9), streaming());
    sim.piece(started());
    sim.fail(ErrorKind::Upstream);
    assert_eq!(sim.opened, [0, 1]);
    sim.say(started());
    sim.say(block(0));
    assert_eq!(sim.parts, []);
    sim.say(Event::text(0, "hi"));
    assert_eq!(sim.parts.len(), 3, "with the events before it");
    sim.finish();
    assert_eq!(sim.machine.failure(), None);
    assert_eq!(text(&sim.events()), "hi");
    assert_eq!(
        sim.outcomes(),
        [AttemptOutcome::Failed, AttemptOutcome::Succeeded]
    );
    assert_eq!(sim.verbatim, [true, true]);
}

#[test]
fn unstreamed_answer_is_emitted_complete_or_failed_over() {
    let request = changed(|chat| chat.generation.stream = None);
    let mut sim = Sim::new(&continuing(2, 9), request);
    sim.say(block(0));
    sim.say(Event::text(0, "ha"));
    sim.cut();
    assert_eq!(sim.parts, [], "a partial answer is not emitted");
    assert_eq!(sim.opened, [0, 1]);
    sim.say(Event::text(0, "hello"));
    sim.finish();
    assert_eq!(text_of_deltas(&sim.events()), "hello");
    assert_eq!(
        sim.outcomes(),
        [AttemptOutcome::Failed, AttemptOutcome::Succeeded]
    );
}

fn text_of_deltas(events: &[Event]) -> String {
    let mut said = String::new();
    for event in events {
        if let Event::BlockDelta {
            delta: ir::Delta::Text { text },
            ..
        } = event
        {
            said.push_str(text);
        }
    }
    said
}

#[test]
fn first_output_wins_the_hedge_and_cancels_the_other() {
    let policy = Policy::Hedged { k: 2, delay_ms: 50 };
    let fleet = with_policy(2, policy, Settings::default());
    let mut sim = Sim::new(&fleet, streaming());
    sim.say_to(1, started());
    sim.pass(50);
    assert_eq!(sim.open.len(), 2);
    sim.say_to(2, started());
    sim.say_to(2, Event::text(0, "fast"));
    assert_eq!(sim.open.iter().map(|open| open.0).collect::<Vec<_>>(), [2]);
    sim.say_to(1, Event::text(0, "slow"));
    sim.finish();
    assert_eq!(text_of_deltas(&sim.events()), "fast");
    assert_eq!(sim.parts.len(), 3, "no output of the lost attempt is emitted");
    assert_eq!(
        sim.outcomes(),
        [AttemptOutcome::HedgeLost, AttemptOutcome::Succeeded]
    );
}

#[test]
fn long_retry_after_is_returned_instead_of_waited_for() {
    let fleet = with_policy(1, Policy::Priority, Settings::default());
    let mut sim = Sim::new(&fleet, streaming());
    let mut limited = error(ErrorKind::RateLimited);
    limited.retry_after_ms = Some(60_000);
    sim.say(Event::Error { error: limited });
    let failure = sim.machine.failure().unwrap();
    assert_eq!(failure.kind, ErrorKind::RateLimited);
    assert_eq!(failure.retry_after_ms, Some(60_000));
    let mut sim = Sim::new(&fleet, streaming());
    assert_eq!(sim.opened, [0; 0], "the rate limit is known");
    assert_eq!(sim.machine.failure().unwrap().kind, ErrorKind::RateLimited);
    sim.pass(1);
}

#[test]
fn short_retry_after_is_waited_for() {
    let fleet = with_policy(1, Policy::Priority, Settings::default());
    let mut sim = Sim::new(&fleet, streaming());
    sim.fail(ErrorKind::Upstream);
    sim.pass(300);
    assert_eq!(sim.opened, [0, 0]);
    let roles: Vec<AttemptRole> = {
        sim.finish();
        sim.machine.trace().attempts.iter().map(|one| one.role).collect()
    };
    assert_eq!(roles, [AttemptRole::First, AttemptRole::Retry]);
}

#[test]
fn idle_timeout_and_deadline_end_the_call() {
    let mut sim = Sim::new(&continuing(1, 9), streaming());
    sim.pass(60_000);
    assert_eq!(sim.machine.failure().unwrap().kind, ErrorKind::Timeout);
    let mut request = streaming();
    request.timeout_ms = Some(500);
    let mut sim = Sim::new(&continuing(1, 9), request);
    sim.say(Event::text(0, "so far"));
    sim.pass(500);
    assert_eq!(count(&sim.events(), is_error), 1);
    assert_eq!(sim.outcomes(), [AttemptOutcome::Cancelled]);
}

#[test]
fn unclosed_stream_is_dropped_after_the_finish_event() {
    let mut sim = Sim::new(&continuing(1, 9), streaming());
    sim.say(Event::text(0, "all"));
    sim.say(Event::Finish {
        reason: FinishReason::Stop,
    });
    assert!(!sim.machine.has_ended(), "the connection can be reused");
    sim.say(Event::Error {
        error: error(ErrorKind::Network),
    });
    assert_eq!(count(&sim.events(), is_error), 0, "its output was complete");
    sim.pass(1_000);
    assert!(sim.machine.has_ended());
    assert_eq!(sim.outcomes(), [AttemptOutcome::Succeeded]);
}

#[test]
fn usage_is_reported_and_estimated_only_on_cancel() {
    let said = Usage {
        input_tokens: Some(11),
        output_tokens: Some(3),
        ..Usage::default()
    };
    let tell = |sim: &mut Sim| {
        sim.say(Event::text(0, "12345678"));
        let usage = said.clone();
        sim.say(Event::Usage { usage });
    };
    let mut sim = Sim::new(&continuing(1, 9), streaming());
    tell(&mut sim);
    sim.finish();
    assert_eq!(sim.machine.usage(), Some(&said));
    let mut sim = Sim::new(&continuing(1, 9), streaming());
    tell(&mut sim);
    sim.cut();
    let record = sim.machine.trace().attempts.remove(0);
    assert_eq!(
        (record.outcome, record.usage),
        (AttemptOutcome::Failed, Some(said.clone()))
    );
    let mut sim = Sim::new(&continuing(1, 9), streaming());
    tell(&mut sim);
    sim.step(Input::Cancel);
    let record = sim.machine.trace().attempts.remove(0);
    assert_eq!((record.outcome, record.usage), (AttemptOutcome::Cancelled, None));
    let guess = record.estimate.unwrap();
    assert_eq!(
        (guess.input_tokens, guess.output_tokens, guess.estimated),
        (Some(11), Some(3), true),
        "more than the text counts"
    );
}

#[test]
fn cancel_after_the_finish_event_is_a_success() {
    let mut sim = Sim::new(&continuing(1, 9), streaming());
    sim.say(Event::text(0, "all"));
    sim.say(Event::Finish {
        reason: FinishReason::Stop,
    });
    sim.step(Input::Cancel);
    assert_eq!(sim.machine.failure(), None);
    assert_eq!(sim.outcomes(), [AttemptOutcome::Succeeded]);
}

#[test]
fn only_plain_text_is_continued() {
    let call = Event::BlockStart {
        index: 1,
        block: Block::ToolCall {
            id: String::from("c"),
            name: String::from("f"),
        },
    };
    let schema = ResponseFormat::JsonObject;
    let requests = [
        (streaming(), Some(call)),
        (changed(|chat| chat.response_format = Some(schema)), None),
        (changed(|chat| chat.generation.n = Some(2)), None),
        (
            changed(|chat| chat.reasoning = Some(ir::ReasoningRequest::default())),
            None,
        ),
    ];
    for (request, more) in requests {
        let mut sim = Sim::new(&continuing(2, 1), request);
        sim.say(Event::text(0, "so far"));
        more.into_iter().for_each(|event| sim.say(event));
        sim.cut();
        assert_eq!(sim.opened, [0]);
        assert!(is_error(sim.events().last().unwrap()));
    }
}

#[test]
fn invalid_request_is_not_retried() {
    let mut sim = Sim::new(&continuing(2, 0), streaming());
    sim.fail(ErrorKind::InvalidRequest);
    assert_eq!(sim.opened, [0]);
    assert_eq!(sim.machine.failure().unwrap().kind, ErrorKind::InvalidRequest);
}

#[test]
fn continuation_reduces_max_tokens() {
    let mut sim = Sim::new(
        &continuing(2, 1),
        changed(|chat| chat.generation.max_tokens = Some(10)),
    );
    for piece in ["a", "b", "c "] {
        sim.say(Event::text(0, piece));
    }
    sim.cut();
    let request = &sim.open.last().unwrap().2;
    let chat = request.as_chat().unwrap();
    assert_eq!(chat.generation.max_tokens, Some(7));
    assert_eq!(chat.messages.last().unwrap().plain_text(), Some("abc"));
    assert!(request.needs().required_features.contains(&Feature::Prefill));
    assert_eq!(request.degradation_for(&Feature::Stream), ir::Degradation::Strict);
    assert!(!sim.verbatim[1], "a continuation request is not raw");
}

#[test]
fn text_is_not_recorded_without_prefill_back_ends() {
    let fleet = continuing(2, 9);
    let mut shown = continuation::Continuation::new(&streaming(), false);
    shown.observe(&Event::text(0, "x"));
    assert_eq!(shown.continuation_request(&Arc::new(streaming())), None);
    let mut sim = Sim::new(&fleet, streaming());
    sim.say(Event::text(0, "so far"));
    sim.cut();
    assert_eq!(sim.opened, [0]);
}
