//! Relayed calls with real tasks: which back-end is called, what is forwarded, disconnects, and what is
//! recorded.

use std::sync::Arc;

use engine::fleet::{Member, Settings as FleetSettings};
use engine::port::{Archive, AttemptUsage, EncodedEvent, EventKind, RunState, Upstream, UsageFilter};
use engine::route::{HostPolicy, Policy};
use engine::{
    Admission, Engine, Fleet, FrameEncoder, Modules, Permit, Ports, ReadFrom, RelayPart, RelayRequest,
    RelayResponse, ResumableResponse, Settings, Subscription, Tenant,
};
use futures::FutureExt;
use ir::operation::Feature;
use ir::{ChatRequest, ErrorKind, Event, Message, Request, Role, RunId, Usage};
use store::memory::MemoryJournal;
use testkit::clock::ManualClock;
use testkit::manual_upstream::ManualUpstream;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::runs::SOON;

struct World {
    engine: Engine,
    journal: Arc<MemoryJournal>,
}

impl World {
    fn new(members: Vec<Member>, settings: Settings) -> Self {
        let host = HostPolicy {
            policy: Some(Policy::Priority),
            ..HostPolicy::default()
        };
        let journal = Arc::new(MemoryJournal::default());
        let ports = Ports {
            fleet: Arc::new(Fleet::new(members, host, FleetSettings::default())),
            journal: journal.clone(),
            clock: Arc::new(ManualClock::default()),
        };
        Self {
            engine: Engine::new(ports, settings, Modules::default()),
            journal,
        }
    }

    async fn relay(&self, call: RelayRequest) -> Result<RelayResponse, Box<engine::RelayFailure>> {
        let admission = Admission {
            client: String::from("client-1"),
            ..Admission::default()
        };
        let tenant = Tenant::local();
        let relayed = self.engine.relay(&tenant, call, admission);
        timeout(SOON, relayed).await.unwrap()
    }

    async fn spent(&self, run: RunId) -> Vec<AttemptUsage> {
        self.journal.attempt_usage(&Tenant::local(), run).await.unwrap()
    }

    async fn state(&self, run: RunId) -> RunState {
        let row = self.engine.find(&Tenant::local(), run).await.unwrap();
        row.unwrap().state
    }
}

/// In this order; `true` marks those that continue a prefix.
fn members<const N: usize>(puppets: [(&Arc<ManualUpstream>, bool); N]) -> Vec<Member> {
    let members = (0..).zip(puppets).map(|(place, (puppet, continues))| {
        let upstream: Arc<dyn Upstream> = puppet.clone();
        let mut member = Member::with_all_features(upstream);
        member.candidate.priority = -place;
        if continues {
            member.candidate.features.insert(Feature::Prefill);
        }
        member
    });
    members.collect()
}

fn call() -> RelayRequest {
    let mut chat = ChatRequest::new("m", vec![Message::text(Role::User, "hello")]);
    chat.generation.stream = Some(true);
    RelayRequest::new(Request::chat("req", chat))
}

fn usage() -> Event {
    let usage = Usage {
        input_tokens: Some(3),
        output_tokens: Some(4),
        ..Usage::default()
    };
    Event::Usage { usage }
}

async fn next(relayed: &mut RelayResponse) -> Option<Event> {
    match timeout(SOON, relayed.next()).await.unwrap()? {
        RelayPart::Event(event) => Some(event),
        part => panic!("{part:?}"),
    }
}

#[tokio::test]
async fn relayed_answer_is_streamed_and_recorded() {
    let puppet = ManualUpstream::new("p");
    let world = World::new(members([(&puppet, false)]), Settings::default());
    let (relayed, strings) = tokio::join!(world.relay(call()), async {
        let strings = puppet.attempt().await;
        strings.text("hi").await;
        strings
    });
    let mut relayed = relayed.unwrap();
    assert_eq!(relayed.backend.name, "p");
    assert_eq!(world.engine.running(), 1);
    assert_eq!(world.state(relayed.run).await, RunState::Running);
    assert_eq!(next(&mut relayed).await, Some(Event::text(0, "hi")));
    strings.send(usage()).await;
    strings.finish().await;
    let mut parts = Vec::new();
    while timeout(SOON, relayed.next_parts(&mut parts)).await.unwrap() {}
    assert_eq!(parts.len(), 2);
    assert_eq!(world.engine.running(), 0, "before it is dropped");
    let spent = world.spent(relayed.run).await;
    assert_eq!(
        (spent.len(), spent[0].input_tokens, spent[0].output_tokens),
        (1, Some(3), Some(4))
    );
    assert_eq!(world.state(relayed.run).await, RunState::Done);
    let trace = world.engine.trace(&Tenant::local(), relayed.run).unwrap();
    assert_eq!((trace.attempts.len(), trace.code.as_deref()), (1, None));
    let filter = UsageFilter {
        by_client: true,
        by_model: true,
        ..UsageFilter::default()
    };
    let lines = world.journal.usage(None, &filter).await.unwrap();
    assert_eq!(lines[0].client.as_deref(), Some("client-1"));
}

#[tokio::test]
async fn disconnect_cancels_at_once_and_estimates_usage() {
    let puppet = ManualUpstream::new("p");
    let world = World::new(members([(&puppet, false)]), Settings::default());
    // Before the first output.
    let leaving = async {
        tokio::select! {
            _ = world.relay(call()) => panic!("no output was sent"),
            strings = puppet.attempt() => strings,
        }
    };
    let strings = leaving.await;
    timeout(SOON, strings.dropped()).await.unwrap();
    // And after it.
    let (relayed, strings) = tokio::join!(world.relay(call()), async {
        let strings = puppet.attempt().await;
        strings.text("12345678").await;
        strings
    });
    let relayed = relayed.unwrap();
    let run = relayed.run;
    drop(relayed);
    timeout(SOON, strings.dropped()).await.unwrap();
    let spent = world.spent(run).await;
    assert_eq!(spent[0].outcome, "cancelled");
    assert_eq!((spent[0].input_tokens, spent[0].output_tokens), (None, None));
    assert_eq!(
        spent[0].estimated_tokens,
        Some(4),
        "two for the request, two for the answer"
    );
    let usage = world.journal.usage(None, &UsageFilter::default()).await.unwrap();
    assert_eq!((usage[0].runs, usage[0].unknown), (2, 2));
    assert_eq!(world.engine.running(), 0);
}

#[tokio::test]
async fn shutdown_waits_for_relayed_calls() {
    let puppet = ManualUpstream::new("p");
    let world = World::new(members([(&puppet, false)]), Settings::default());
    let (relayed, _strings) = tokio::join!(world.relay(call()), async {
        let strings = puppet.attempt().await;
        strings.text("hi").await;
        strings
    });
    let relayed = relayed.unwrap();
    let run = relayed.run;
    assert!(world.engine.drain().now_or_never().is_none());
    timeout(SOON, world.engine.stop()).await.unwrap();
    let mut hung_up = std::pin::pin!(world.engine.relays_drained());
    assert!(hung_up.as_mut().now_or_never().is_none());
    drop(relayed);
    // After the drain, its usage is recorded.
    timeout(SOON, hung_up).await.unwrap();
    assert_eq!(world.spent(run).await.len(), 1);
    timeout(SOON, world.engine.drain()).await.unwrap();
}

#[tokio::test]
async fn truncated_stream_is_continued_by_another_back_end() {
    let (first, second) = (ManualUpstream::new("first"), ManualUpstream::new("second"));
    let world = World::new(members([(&first, false), (&second, true)]), Settings::default());
    let (relayed, strings) = tokio::join!(world.relay(call()), async {
        let strings = first.attempt().await;
        strings.text("Hello ").await;
        strings
    });
    let mut relayed = relayed.unwrap();
    drop(strings);
    assert_eq!(next(&mut relayed).await, Some(Event::text(0, "Hello ")));
    let (rest, ()) = tokio::join!(
        async {
            let mut rest = Vec::new();
            while let Some(event) = next(&mut relayed).await {
                rest.push(event);
            }
            rest
        },
        async {
            let strings = second.attempt().await;
            let chat = strings.request.as_chat().unwrap();
            assert_eq!(chat.messages.last().unwrap().plain_text(), Some("Hello"));
            strings.text(" world").await;
            strings.send(usage()).await;
            strings.finish().await;
        }
    );
    assert_eq!(rest[0], Event::text(0, "world"));
    assert!(matches!(rest.last(), Some(Event::Finish { .. })));
    let spent = world.spent(relayed.run).await;
    let outcomes: Vec<&str> = spent.iter().map(|spent| spent.outcome.as_str()).collect();
    assert_eq!(outcomes, ["failed", "succeeded"]);
    assert_eq!(
        (spent[0].estimated_tokens, spent[1].output_tokens),
        (Some(4), Some(4))
    );
}

#[tokio::test]
async fn truncated_stream_without_continuation_ends_in_one_error() {
    let puppet = ManualUpstream::new("p");
    let world = World::new(members([(&puppet, false)]), Settings::default());
    let (relayed, strings) = tokio::join!(world.relay(call()), async {
        let strings = puppet.attempt().await;
        strings.text("half").await;
        strings
    });
    let mut relayed = relayed.unwrap();
    drop(strings);
    assert_eq!(next(&mut relayed).await, Some(Event::text(0, "half")));
    assert!(matches!(next(&mut relayed).await, Some(Event::Error { .. })));
    assert_eq!(next(&mut relayed).await, None);
    assert_eq!(relayed.failure().unwrap().kind, ErrorKind::Network);
    assert_eq!(world.state(relayed.run).await, RunState::Failed);
}

#[tokio::test]
async fn forbidden_model_sends_no_request_and_releases_the_permit() {
    let puppet = ManualUpstream::new("p");
    let world = World::new(members([(&puppet, false)]), Settings::default());
    let freed = Arc::new(Notify::new());
    let admission = Admission {
        models: Some(vec![String::from("other")]),
        permit: Some(Permit::new(Freed(freed.clone()))),
        ..Admission::default()
    };
    let relayed = world.engine.relay(&Tenant::local(), call(), admission).await;
    let failure = relayed.unwrap_err();
    assert_eq!(
        (failure.error.kind, failure.attempts),
        (ErrorKind::NoCandidate, 0)
    );
    timeout(SOON, freed.notified()).await.unwrap();
    assert_eq!(world.spent(failure.run).await, [AttemptUsage::unknown()]);
}

/// Notifies when it is dropped.
struct Freed(Arc<Notify>);

impl Drop for Freed {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[tokio::test]
async fn concurrent_calls_are_limited() {
    let puppet = ManualUpstream::new("p");
    let settings = Settings {
        runs_max: 1,
        ..Settings::default()
    };
    let world = World::new(members([(&puppet, false)]), settings);
    let (relayed, _strings) = tokio::join!(world.relay(call()), async {
        let strings = puppet.attempt().await;
        strings.text("hi").await;
        strings
    });
    let relayed = relayed.unwrap();
    let refused = world.relay(call()).await.unwrap_err();
    assert_eq!(refused.error.kind, ErrorKind::RateLimited);
    drop(relayed);
    assert_eq!(world.engine.running(), 0);
}

#[tokio::test]
async fn recovery_closes_relayed_calls_of_a_killed_server() {
    let puppet = ManualUpstream::new("p");
    let world = World::new(members([(&puppet, false)]), Settings::default());
    let (relayed, _strings) = tokio::join!(world.relay(call()), async {
        let strings = puppet.attempt().await;
        strings.text("hi").await;
        strings
    });
    let relayed = relayed.unwrap();
    // A killed process runs no destructors.
    let run = std::mem::ManuallyDrop::new(relayed).run;
    world.engine.recover().await.unwrap();
    assert_eq!(world.state(run).await, RunState::Failed);
    assert_eq!(world.spent(run).await, [AttemptUsage::unknown()]);
}

/// Encodes text unchanged.
#[derive(Debug)]
struct Plain;

impl FrameEncoder for Plain {
    fn part(&mut self, part: RelayPart, frames: &mut Vec<String>) {
        match part {
            RelayPart::Event(Event::BlockDelta {
                delta: ir::Delta::Text { text },
                ..
            }) => frames.push(text),
            RelayPart::Event(Event::Error { error }) => frames.push(format!("error: {error}")),
            _ => {}
        }
    }

    fn end(&mut self, good: bool) -> String {
        String::from(if good { "done" } else { "" })
    }
}

impl World {
    async fn resumable(
        &self,
        puppet: &ManualUpstream,
    ) -> (ResumableResponse, testkit::manual_upstream::ManualAttempt) {
        let tenant = Tenant::local();
        let relayed = self
            .engine
            .relay_resumable(&tenant, call(), Admission::default(), Box::new(Plain));
        let (relayed, strings) = tokio::join!(timeout(SOON, relayed), async {
            let strings = puppet.attempt().await;
            strings.text("one").await;
            strings
        });
        (relayed.unwrap().unwrap(), strings)
    }

    async fn resume(&self, run: RunId, behind: u64) -> Subscription {
        let place = ReadFrom::AfterFrame(behind);
        self.engine.subscribe(&Tenant::local(), run, place).await.unwrap()
    }
}

async fn frames(subscription: &mut Subscription, count: usize) -> Vec<EncodedEvent> {
    let mut frames = Vec::new();
    while frames.len() < count {
        match timeout(SOON, subscription.next()).await.unwrap().unwrap() {
            Some(more) => frames.extend(more),
            None => break,
        }
    }
    frames
}

fn bodies(frames: &[EncodedEvent]) -> Vec<(Option<u64>, &str)> {
    frames.iter().map(|frame| (frame.seq, &*frame.body)).collect()
}

#[tokio::test]
async fn reconnect_resumes_after_the_last_frame() {
    let puppet = ManualUpstream::new("p");
    let world = World::new(members([(&puppet, false)]), Settings::default());
    let (mut relayed, strings) = world.resumable(&puppet).await;
    let seen = frames(&mut relayed.frames, 1).await;
    assert_eq!(bodies(&seen), [(Some(1), "one")]);
    let run = relayed.run;
    drop(relayed);
    strings.text("two").await;
    strings.text("three").await;
    let mut back = world.resume(run, 1).await;
    let seen = frames(&mut back, 2).await;
    assert_eq!(bodies(&seen), [(Some(2), "two"), (Some(3), "three")]);
    strings.send(usage()).await;
    strings.finish().await;
    let last = frames(&mut back, usize::MAX).await;
    assert_eq!(
        (last[0].kind, bodies(&last)),
        (EventKind::Final, vec![(None, "done")])
    );
    // And again after the end, from the journal.
    let seen = frames(&mut world.resume(run, 2).await, usize::MAX).await;
    assert_eq!(bodies(&seen), [(Some(3), "three"), (None, "done")]);
    assert!(
        world
            .engine
            .subscribe(&Tenant::local(), run, ReadFrom::AfterFrame(9))
            .await
            .is_err()
    );
    let spent = world.spent(run).await;
    assert_eq!((spent.len(), spent[0].output_tokens), (1, Some(4)));
}

#[tokio::test]
async fn response_is_abandoned_after_the_grace_period() {
    let puppet = ManualUpstream::new("p");
    let settings = Settings {
        resume_grace_ms: 20,
        ..Settings::default()
    };
    let world = World::new(members([(&puppet, false)]), settings);
    let (relayed, strings) = world.resumable(&puppet).await;
    let run = relayed.run;
    drop(relayed);
    timeout(SOON, strings.dropped()).await.unwrap();
    let seen = frames(&mut world.resume(run, 0).await, usize::MAX).await;
    assert_eq!(bodies(&seen), [(Some(1), "one"), (None, "")]);
    assert_eq!(seen[1].kind, EventKind::Error);
    assert_eq!(world.spent(run).await[0].outcome, "cancelled");
}

#[tokio::test]
async fn shutdown_leaves_resumable_response_for_recovery() {
    let puppet = ManualUpstream::new("p");
    let world = World::new(members([(&puppet, false)]), Settings::default());
    let (mut relayed, strings) = world.resumable(&puppet).await;
    frames(&mut relayed.frames, 1).await;
    timeout(SOON, world.engine.stop()).await.unwrap();
    timeout(SOON, strings.dropped()).await.unwrap();
    assert_eq!(world.state(relayed.run).await, RunState::Running);
    world.engine.recover().await.unwrap();
    let seen = frames(&mut world.resume(relayed.run, 1).await, usize::MAX).await;
    assert_eq!(
        (seen[0].kind, bodies(&seen)),
        (EventKind::Interrupted, vec![(None, "")])
    );
    assert_eq!(world.spent(relayed.run).await, [AttemptUsage::unknown()]);
}
