//! Sends requests for a given time over a fixed number of connections and counts responses, latencies,
//! tokens, and the resources of the measured process. Without a rate, each connection sends its next request
//! after the response; with a rate, at scheduled times.

mod connection;
mod disconnect;
mod endpoint;
mod schedule;
mod tally;

use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use clap::{Args, ValueEnum};
use hyper::Uri;
use serde_json::{Value, json};
use tokio::time::Instant;

use self::connection::Connection;
use self::endpoint::Endpoint;
use self::schedule::Schedule;
use self::tally::Tally;
use crate::process::{cpu_us, rss_kb};

#[derive(Debug, Args)]
pub(crate) struct Load {
    /// The URL to call.
    #[arg(long)]
    url: Uri,
    /// The kind of request and response.
    #[arg(long, value_enum, default_value_t = Mode::Chat)]
    mode: Mode,
    /// The endpoint to disconnect, with `--mode leave`. Its path is given by the URL.
    #[arg(long, value_enum, default_value_t = Endpoint::ChatStream)]
    endpoint: Endpoint,
    /// The model name, which specifies the behaviour of the upstream.
    #[arg(long, default_value = "mock")]
    model: String,
    #[arg(long, default_value_t = 1)]
    connections: usize,
    /// Requests per second of all connections together, at even intervals. The latency of a late request counts
    /// from its scheduled time.
    #[arg(long, conflicts_with = "once", value_parser = positive)]
    rate: Option<f64>,
    /// Seconds to measure.
    #[arg(long, default_value_t = 4.0)]
    seconds: f64,
    /// Seconds of load before measuring.
    #[arg(long, default_value_t = 1.0)]
    warm: f64,
    /// The process whose CPU time and memory are measured.
    #[arg(long)]
    pid: Option<u32>,
    /// Send one request on every connection, all at once, instead of a load over time.
    #[arg(long)]
    once: bool,
    /// The upstream that reports disconnects.
    #[arg(long)]
    upstream: Option<String>,
    /// The bearer token.
    #[arg(long)]
    key: Option<String>,
    /// Send each request with an idempotency key of its own, as the official clients do.
    #[arg(long)]
    idempotent: bool,
    /// Copied to the output line.
    #[arg(long, default_value = "")]
    label: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// A chat completion, unstreamed.
    Chat,
    /// A streamed chat completion.
    Stream,
    /// A streamed module.
    Execute,
    /// A module, unstreamed.
    Unary,
    /// The second half of a module's stream: it is run once, and resumed from its middle repeatedly.
    Resume,
    /// A response that is disconnected before its end. Measures how long the upstream continues after that.
    Disconnect,
}

/// The time window in which a request counts.
#[derive(Clone, Copy)]
pub(crate) struct Window {
    from: Instant,
    until: Instant,
    once: bool,
}

impl Load {
    #[expect(clippy::print_stdout, reason = "the line is the result of the command")]
    pub(crate) async fn run(self) -> Result<()> {
        println!("{}", self.measure().await?);
        Ok(())
    }

    pub(crate) async fn measure(self) -> Result<Value> {
        let host = self.url.authority().context("the URL has no host")?.to_string();
        let began = Instant::now();
        let from = began + Duration::from_secs_f64(self.warm);
        let window = Window {
            from,
            until: from + Duration::from_secs_f64(self.seconds),
            once: self.once,
        };
        let question = connection::EncodedRequest {
            host,
            path: String::from(self.url.path()),
            body: match self.mode {
                Mode::Disconnect => self.endpoint.body(&self.model),
                mode => Bytes::from(mode.body(&self.model)),
            },
            key: self.key.clone(),
            mode: self.mode,
            endpoint: self.endpoint,
            idempotent: self.idempotent,
            headers: match self.mode {
                Mode::Disconnect => self.endpoint.headers(&self.model),
                _ => Vec::new(),
            },
            upstream: self.upstream.clone(),
        };
        let tasks: Vec<_> = (0..self.connections)
            .map(|index| {
                let schedule = self
                    .rate
                    .map(|rate| Schedule::new(rate, index, self.connections, began));
                tokio::spawn(Connection::new(question.clone(), schedule).ask(window))
            })
            .collect();
        let before = self.measured_from(window).await;
        let peak_kb = self.watch_memory(window).await;
        let cpu_after = self.pid.and_then(cpu_us);
        let mut tally = Tally::default();
        for task in tasks {
            tally.add(task.await?);
        }
        let cpu_after = if self.once {
            self.pid.and_then(cpu_us)
        } else {
            cpu_after
        };
        let seconds = if self.once {
            began.elapsed().as_secs_f64()
        } else {
            self.seconds
        };
        let cpu = before
            .0
            .zip(cpu_after)
            .map(|(before, after)| after.saturating_sub(before));
        let mut line = tally.show(seconds, cpu);
        line["label"] = json!(self.label);
        line["connections"] = json!(self.connections);
        line["rss_kb"] = json!({"before": before.1, "peak": peak_kb});
        Ok(line)
    }

    async fn measured_from(&self, window: Window) -> (Option<u64>, Option<u64>) {
        let memory = self.pid.and_then(rss_kb);
        if !self.once {
            tokio::time::sleep_until(window.from).await;
        }
        (self.pid.and_then(cpu_us), memory)
    }

    /// Peak memory during the load.
    async fn watch_memory(&self, window: Window) -> Option<u64> {
        let mut peak = None;
        while Instant::now() < window.until {
            peak = peak.max(self.pid.and_then(rss_kb));
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        peak
    }
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(rate) if rate > 0.0 && f64::is_finite(rate) => Ok(rate),
        _ => Err(String::from("expected a number above 0")),
    }
}

impl Mode {
    pub(crate) fn streams(self) -> bool {
        matches!(self, Self::Stream | Self::Execute | Self::Resume)
    }

    /// The terminator of a complete stream.
    pub(crate) fn end(self) -> &'static [u8] {
        match self {
            Self::Execute | Self::Unary | Self::Resume => b"event: final",
            Self::Chat | Self::Stream | Self::Disconnect => b"[DONE]",
        }
    }

    fn body(self, model: &str) -> String {
        if matches!(self, Self::Execute | Self::Unary | Self::Resume) {
            return json!({"input": {"code": "x=1"}}).to_string();
        }
        let mut body = json!({
            "model": model,
            "messages": [
                {"role": "system", "content": "You are a helpful assistant."},
                {"role": "user", "content": "Say hello and describe the weather in three short sentences, please."},
            ],
            "max_tokens": 256,
        });
        if self == Self::Stream {
            body["stream"] = json!(true);
            body["stream_options"] = json!({"include_usage": true});
        }
        body.to_string()
    }
}
