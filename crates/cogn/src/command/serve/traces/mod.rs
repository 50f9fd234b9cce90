//! OpenTelemetry traces of runs: one span per run and a child span per attempt, with the attributes of the
//! GenAI conventions. Spans are built from the trace records after the run has ended, so they add no latency.
//! Spans contain no text of prompts or answers.

mod dropped;
mod span;
#[cfg(test)]
mod tests;

use std::time::Duration;

use anyhow::{Result, anyhow};
use engine::Engine;
use engine::run::TraceSink;
use reqwest::Client;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::dropped::DroppedTraces;
use crate::config::{self, Settings};

/// Limit of runs whose spans are queued; the spans of a run are dropped if the queue is full.
const QUEUE_MAX: usize = 1_024;
/// Limit of runs in one message.
const BATCH_MAX: usize = 64;
/// How long runs are collected into one message; a full message is sent at once.
const GATHER: Duration = Duration::from_millis(500);
const TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit for sending the queued spans on shutdown.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// Sends the spans of ended runs to the collector.
pub(super) struct Exporter {
    endpoint: String,
    key: Option<SecretString>,
    service_name: String,
    client: Client,
    queue: mpsc::Receiver<Vec<Value>>,
    /// The spans of the runs that are being sent.
    batch: Vec<Vec<Value>>,
    losses: DroppedTraces,
}

impl Exporter {
    /// `None` if no collector is configured.
    pub(super) fn of(settings: &Settings, engine: &Engine) -> Result<Option<Self>> {
        let traces = &settings.traces;
        let Some(endpoint) = traces.endpoint.clone() else {
            return Ok(None);
        };
        let key = traces.credential.as_ref().map(|name| {
            let credential = settings.credential(name);
            let credential = credential.ok_or_else(|| anyhow!("unknown credential `{name}`"))?;
            config::resolve(credential).map_err(|reason| anyhow!("traces.credential: {reason}"))
        });
        let (exporter, tell) = Self::to(endpoint, key.transpose()?, traces.service_name.clone())?;
        engine.set_trace_sink(TraceSink(Box::new(move |trace| tell(span::spans(trace)))));
        Ok(Some(exporter))
    }

    /// Returns the exporter and the function that queues the spans of a run.
    fn to(
        endpoint: String,
        key: Option<SecretString>,
        service_name: String,
    ) -> Result<(Self, impl Fn(Vec<Value>) + Send + Sync + 'static)> {
        let (out, queue) = mpsc::channel(QUEUE_MAX);
        let losses = DroppedTraces::default();
        let no_room = losses.no_room.clone();
        let exporter = Self {
            endpoint,
            key,
            service_name,
            client: Client::builder().timeout(TIMEOUT).build()?,
            queue,
            batch: Vec::new(),
            losses,
        };
        let tell = move |spans: Vec<Value>| {
            if !spans.is_empty() && out.try_send(spans).is_err() {
                no_room.add(1);
            }
        };
        Ok((exporter, tell))
    }

    /// Sends spans until `stop`, then flushes the queue within [`FLUSH_TIMEOUT`].
    pub(super) async fn work(mut self, stop: CancellationToken) {
        let end = async {
            stop.cancelled().await;
            tokio::time::sleep(FLUSH_TIMEOUT).await;
        };
        tokio::select! {
            () = self.send_all(&stop) => {}
            () = end => self.losses.left(self.batch.len() + self.queue.len()),
        }
        self.losses.tell_last();
    }

    async fn send_all(&mut self, stop: &CancellationToken) {
        while self.gather(stop).await {
            self.send().await;
            self.batch.clear();
            self.losses.tell();
        }
    }

    /// Fills the batch; returns false only on shutdown after all spans were sent.
    async fn gather(&mut self, stop: &CancellationToken) -> bool {
        let Self { queue, batch, .. } = self;
        let gathering = async {
            queue.recv_many(batch, BATCH_MAX).await;
            let more = async {
                while batch.len() < BATCH_MAX && queue.recv_many(batch, BATCH_MAX - batch.len()).await > 0 {}
            };
            tokio::time::timeout(GATHER, more).await.ok();
        };
        // Cancel-safe: received spans are already in the batch.
        if stop.run_until_cancelled(gathering).await.is_none() {
            while batch.len() < BATCH_MAX
                && let Ok(spans) = queue.try_recv()
            {
                batch.push(spans);
            }
        }
        !batch.is_empty()
    }

    async fn send(&mut self) {
        let spans: Vec<&Value> = self.batch.iter().flatten().collect();
        let message = span::message(&self.service_name, &spans);
        let mut request = self
            .client
            .post(&self.endpoint)
            .header("content-type", "application/json")
            .body(message.to_string());
        if let Some(key) = &self.key {
            request = request.bearer_auth(key.expose_secret());
        }
        let sent = request.send().await.and_then(reqwest::Response::error_for_status);
        if let Err(error) = sent {
            self.losses.refused(self.batch.len(), &error.without_url());
        }
    }
}
