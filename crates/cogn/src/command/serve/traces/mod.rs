//! Traces of runs for OpenTelemetry: one span for each run, a child for each attempt, with the attributes
//! of the GenAI conventions. They are made from the records that are kept anyway, after the run has ended,
//! so tracing costs a run nothing. No span holds a word of a prompt or an answer.

mod span;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow};
use engine::Engine;
use engine::run::Witness;
use reqwest::Client;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::config::{self, Settings};

/// Spans that wait to be sent; those of a run that finds no room are not sent.
const QUEUE_MAX: usize = 1_024;
/// Runs in one message.
const BATCH_MAX: usize = 64;
/// How long runs are gathered before they are sent together.
const GATHER: Duration = Duration::from_millis(500);
const TIMEOUT: Duration = Duration::from_secs(5);

/// Sends what the engine tells.
pub(super) struct Exporter {
    endpoint: String,
    key: Option<SecretString>,
    service_name: String,
    client: Client,
    queue: mpsc::Receiver<Vec<Value>>,
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
        let (out, queue) = mpsc::channel(QUEUE_MAX);
        engine.tell(Witness(Box::new(move |trace| {
            if out.try_send(span::spans(trace)).is_err() {
                warn!(run = %trace.run, "the trace of a run found no room");
            }
        })));
        Ok(Some(Self {
            endpoint,
            key: key.transpose()?,
            service_name: traces.service_name.clone(),
            client: Client::builder().timeout(TIMEOUT).build()?,
            queue,
        }))
    }

    /// Until `stop`, and then what is left.
    pub(super) async fn work(mut self, stop: CancellationToken) {
        let mut going = true;
        while going {
            let mut batch = Vec::new();
            let first = tokio::select! {
                first = self.queue.recv() => first,
                () = stop.cancelled() => None,
            };
            batch.extend(first.into_iter().flatten());
            going = !stop.is_cancelled();
            if going {
                tokio::select! {
                    () = tokio::time::sleep(GATHER) => {}
                    () = stop.cancelled() => {}
                }
            }
            for _ in 0..BATCH_MAX {
                match self.queue.try_recv() {
                    Ok(spans) => batch.extend(spans),
                    Err(_) => break,
                }
            }
            if !batch.is_empty() {
                self.send(&batch).await;
            }
        }
    }

    async fn send(&self, spans: &[Value]) {
        let message = span::message(&self.service_name, spans);
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
            warn!(error = %error.without_url(), "traces could not be sent");
        }
    }
}
