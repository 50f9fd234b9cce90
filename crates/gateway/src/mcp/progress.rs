//! A run as its caller follows it: notes about how far it is while it goes on, its envelope at the end. A
//! caller that withdraws ends the run.

use engine::port::{EventKind, EncodedEvent};
use engine::run::envelope;
use engine::{Engine, Subscription, Tenant};
use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext};
use serde_json::Value;
use tokio::time::Instant;

use crate::limits;

/// Reads a run to its end.
pub(super) async fn run_with_progress(
    engine: &Engine,
    tenant: &Tenant,
    mut subscription: Subscription,
    context: &RequestContext<RoleServer>,
) -> Result<Value, engine::Error> {
    let run = subscription.run();
    let mut notes = ProgressNotifier::new(context);
    let mut withdrawn = false;
    loop {
        tokio::select! {
            events = subscription.next() => {
                let events = events?.ok_or(engine::Error::MissingTerminalEvent(run))?;
                if let Some(last) = events.iter().find(|event| event.kind.is_terminal()) {
                    return Ok(envelope(last));
                }
                notes.see(&events);
                notes.tell_now_and_then().await;
            }
            () = tokio::time::sleep(limits::MCP_PROGRESS_SILENCE), if notes.token.is_some() => {
                notes.still_running().await;
            }
            () = context.ct.cancelled(), if !withdrawn => {
                withdrawn = true;
                engine.cancel(tenant, run).await?;
            }
        }
    }
}

/// What is told, to those who asked to be told.
struct ProgressNotifier<'a> {
    peer: &'a Peer<RoleServer>,
    token: Option<ProgressToken>,
    /// Every event is a step; how many there will be is not known.
    steps: u32,
    message: String,
    told: Option<Instant>,
}

impl<'a> ProgressNotifier<'a> {
    fn new(context: &'a RequestContext<RoleServer>) -> Self {
        Self {
            peer: &context.peer,
            token: context.meta.get_progress_token(),
            steps: 0,
            message: String::new(),
            told: None,
        }
    }

    fn see(&mut self, events: &[EncodedEvent]) {
        for event in events {
            self.steps = self.steps.saturating_add(1);
            match event.kind {
                EventKind::Progress => self.message = message_of(&event.body),
                EventKind::Chunk => self.message = String::from("the answer is being written"),
                EventKind::Meta | EventKind::Final | EventKind::Error => {}
            }
        }
    }

    /// Chunks come faster than anyone reads notes.
    async fn tell_now_and_then(&mut self) {
        let pause = limits::MCP_PROGRESS_PAUSE;
        if self.told.is_none_or(|told| told.elapsed() >= pause) {
            self.tell().await;
        }
    }

    async fn still_running(&mut self) {
        self.steps = self.steps.saturating_add(1);
        self.message = String::from("still running");
        self.tell().await;
    }

    async fn tell(&mut self) {
        let Some(token) = self.token.clone() else { return };
        self.told = Some(Instant::now());
        let mut note = ProgressNotificationParam::new(token, f64::from(self.steps));
        if !self.message.is_empty() {
            note = note.with_message(self.message.clone());
        }
        // Who does not hear it has other ways to learn of the end.
        self.peer.notify_progress(note).await.ok();
    }
}

fn message_of(body: &str) -> String {
    let value: Value = serde_json::from_str(body).unwrap_or_default();
    let progress = &value["progress"];
    let text = [&progress["message"], &progress["stage"]];
    let text = text.into_iter().find_map(Value::as_str);
    text.map(String::from).unwrap_or_default()
}
