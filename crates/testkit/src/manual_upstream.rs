//! An upstream whose events are sent by the test, and which reports when an attempt is dropped.

use std::sync::{Arc, Mutex, PoisonError};

use engine::port::{Backend, EventStream, EventUpstream};
use futures::StreamExt;
use ir::event::FinishReason;
use ir::{Event, Request};
use tokio::sync::mpsc;

/// Capacity of the event queue.
const EVENTS_MAX: usize = 10_000;

#[derive(Debug)]
pub struct ManualUpstream {
    backend: Backend,
    attempts: mpsc::Sender<ManualAttempt>,
    opened: Mutex<mpsc::Receiver<ManualAttempt>>,
}

/// One attempt, controlled by the test.
#[derive(Debug)]
pub struct ManualAttempt {
    /// The request of the attempt.
    pub request: Arc<Request>,
    events: mpsc::Sender<Event>,
}

impl ManualUpstream {
    pub fn new(name: &str) -> Arc<Self> {
        let (attempts, opened) = mpsc::channel(16);
        Arc::new(Self {
            backend: Backend {
                name: String::from(name),
                kind: String::from("puppet"),
                model: None,
            },
            attempts,
            opened: Mutex::new(opened),
        })
    }

    /// The next attempt that a run opens.
    pub async fn attempt(&self) -> ManualAttempt {
        std::future::poll_fn(|context| {
            let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
            opened.poll_recv(context)
        })
        .await
        .unwrap()
    }
}

impl EventUpstream for ManualUpstream {
    fn backend(&self) -> &Backend {
        &self.backend
    }

    fn stream(&self, request: Arc<Request>) -> EventStream {
        let (sender, receiver) = mpsc::channel(EVENTS_MAX);
        let strings = ManualAttempt {
            request,
            events: sender,
        };
        self.attempts.try_send(strings).unwrap();
        tokio_stream::wrappers::ReceiverStream::new(receiver).boxed()
    }
}

impl ManualAttempt {
    pub async fn text(&self, text: &str) {
        self.send(Event::text(0, text)).await;
    }

    pub async fn send(&self, event: Event) {
        self.events.send(event).await.unwrap();
    }

    pub async fn finish(self) {
        let reason = FinishReason::Stop;
        self.events.send(Event::Finish { reason }).await.unwrap();
    }

    /// Completes when the run drops the attempt.
    pub async fn dropped(&self) {
        self.events.closed().await;
    }
}
