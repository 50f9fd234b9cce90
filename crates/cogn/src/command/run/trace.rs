//! The trace of a run for `--trace`: all events with their times, the attempts, and the envelope.

use std::time::Instant;

use engine::port::EncodedEvent;
use serde_json::{Value, json};

#[derive(Debug)]
pub(crate) struct Trace {
    module: String,
    began: Instant,
    /// Policy, seed and attempts.
    route: Value,
    events: Vec<Value>,
}

impl Trace {
    pub(crate) fn new(module: &str) -> Self {
        Self {
            module: String::from(module),
            began: Instant::now(),
            route: Value::Null,
            events: Vec::new(),
        }
    }

    pub(crate) fn record_event(&mut self, event: &EncodedEvent) {
        let body: Value = serde_json::from_str(&event.body).unwrap_or_default();
        self.events.push(json!({
            "at_ms": self.elapsed_ms(),
            "kind": event.kind.as_str(),
            "event": body,
        }));
    }

    pub(crate) fn record_attempts(&mut self, trace: Option<&engine::run::Trace>) {
        self.route = json!(trace);
    }

    pub(crate) fn finish(self, envelope: &Value) -> Value {
        json!({
            "module": self.module,
            "elapsed_ms": self.elapsed_ms(),
            "route": self.route,
            "events": self.events,
            "envelope": envelope,
        })
    }

    fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}
