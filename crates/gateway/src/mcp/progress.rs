//! Runs with progress notifications while they are running and the envelope at the end. A cancelled call
//! cancels the run.

use engine::port::{EncodedEvent, EventKind};
use engine::run::envelope;
use engine::{Engine, Subscription, Tenant};
use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext};
use serde_json::Value;
use tokio::time::Instant;

use crate::limits;

/// Reads a run to its terminal event.
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
                notes.record(&events);
                notes.send_rate_limited().await;
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

/// Progress notifications, if the client requested them.
struct ProgressNotifier<'a> {
    peer: &'a Peer<RoleServer>,
    token: Option<ProgressToken>,
    /// Every event is a step; the total is unknown.
    steps: u32,
    message: String,
    sent_at: Option<Instant>,
}

impl<'a> ProgressNotifier<'a> {
    fn new(context: &'a RequestContext<RoleServer>) -> Self {
        Self {
            peer: &context.peer,
            token: context.meta.get_progress_token(),
            steps: 0,
            message: String::new(),
            sent_at: None,
        }
    }

    fn record(&mut self, events: &[EncodedEvent]) {
        for event in events {
            self.steps = self.steps.saturating_add(1);
            match event.kind {
                EventKind::Progress => self.message = message_of(&event.body),
                EventKind::Chunk => self.message = String::from("streaming the answer"),
                EventKind::Meta | EventKind::Final | EventKind::Error | EventKind::Interrupted => {}
            }
        }
    }

    /// Rate limit: chunks arrive faster than notifications are useful.
    async fn send_rate_limited(&mut self) {
        let pause = limits::MCP_PROGRESS_PAUSE;
        if self.sent_at.is_none_or(|at| at.elapsed() >= pause) {
            self.send().await;
        }
    }

    async fn still_running(&mut self) {
        self.steps = self.steps.saturating_add(1);
        self.message = String::from("still running");
        self.send().await;
    }

    async fn send(&mut self) {
        let Some(token) = self.token.clone() else { return };
        self.sent_at = Some(Instant::now());
        let mut note = ProgressNotificationParam::new(token, f64::from(self.steps));
        if !self.message.is_empty() {
            note = note.with_message(self.message.clone());
        }
        // Notifications are optional; the end is reported by the result.
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
