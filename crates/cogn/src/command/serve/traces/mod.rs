//! Traces of runs for OpenTelemetry: one span for each run, a child for each attempt, with the attributes
//! of the GenAI conventions. They are made from the records that are kept anyway, after the run has ended,
//! so tracing costs a run nothing. No span holds a word of a prompt or an answer.

mod dropped;
mod span;
#[cfg(test)]
mod tests;

use std::sync::Arc;
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

/// Runs whose spans wait to be sent; those of a run that finds no room are not sent.
const QUEUE_MAX: usize = 1_024;
/// Runs in one message.
const BATCH_MAX: usize = 64;
/// How long runs are gathered before they are sent together; a full message does not wait.
const GATHER: Duration = Duration::from_millis(500);
const TIMEOUT: Duration = Duration::from_secs(5);
/// How long a server that stops takes to send what is left.
const FAREWELL: Duration = Duration::from_secs(5);

/// Sends what the engine tells.
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
    /// `None` where no collector is configured.
    pub(super) fn of(settings: &Settings, engine: &Arc<Engine>) -> Result<Option<Self>> {
        let traces = &settings.traces;
        let Some(endpoint) = traces.endpoint.clone() else {
            return Ok(None);
        };
        let key = traces.credential.as_ref().map(|name| {
            let credential = settings.credential(name);
            let credential = credential.ok_or_else(|| anyhow!("no credential is named `{name}`"))?;
            config::resolve(credential).map_err(|reason| anyhow!("traces.credential: {reason}"))
        });
        let (exporter, tell) = Self::to(endpoint, key.transpose()?, traces.service_name.clone())?;
        engine.set_trace_sink(TraceSink(Box::new(move |trace| tell(span::spans(trace)))));
        Ok(Some(exporter))
    }

    /// With the way to tell it the spans of a run.
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

    /// Until `stop`, and then what is left, for a while.
    pub(super) async fn work(mut self, stop: CancellationToken) {
        let end = async {
            stop.cancelled().await;
            tokio::time::sleep(FAREWELL).await;
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

    /// Whether there is anything to send; there is nothing only when the server stops and all is sent.
    async fn gather(&mut self, stop: &CancellationToken) -> bool {
        let Self { queue, batch, .. } = self;
        let gathering = async {
            queue.recv_many(batch, BATCH_MAX).await;
            let more = async {
                while batch.len() < BATCH_MAX && queue.recv_many(batch, BATCH_MAX - batch.len()).await > 0 {}
            };
            tokio::time::timeout(GATHER, more).await.ok();
        };
        // Nothing is lost when it is dropped: what was received is in the batch.
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
