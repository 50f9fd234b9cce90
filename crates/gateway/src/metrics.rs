//! Prometheus metrics. Label values are defined by the server (routes, methods, statuses), never sent by a
//! client, so their number is bounded.

use std::sync::atomic::AtomicU64;
use std::time::Instant;

use axum::extract::{MatchedPath, Request};
use axum::http::Method;
use axum::response::Response;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::state::Gateway;

/// In seconds; a model typically responds after 1 to 100 s.
const BUCKETS: [f64; 12] = [
    0.001, 0.005, 0.02, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    method: &'static str,
    route: String,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabel {
    route: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReloadLabel {
    outcome: &'static str,
}

#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    seconds: Family<RouteLabel, Histogram, fn() -> Histogram>,
    reloads: Family<ReloadLabel, Counter>,
    runs: Gauge<i64>,
    modules: Gauge<i64>,
    pub(crate) connections: Gauge<i64>,
    pub(crate) streams: Gauge<i64>,
    pub(crate) sockets: Gauge<i64>,
    pub(crate) stream_bytes: Counter<u64, AtomicU64>,
}

impl Default for Metrics {
    fn default() -> Self {
        let metrics = Self {
            registry: Registry::default(),
            requests: Family::default(),
            seconds: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            reloads: Family::default(),
            runs: Gauge::default(),
            modules: Gauge::default(),
            connections: Gauge::default(),
            streams: Gauge::default(),
            sockets: Gauge::default(),
            stream_bytes: Counter::default(),
        };
        metrics.registered()
    }
}

impl Metrics {
    fn registered(mut self) -> Self {
        let registry = &mut self.registry;
        let requests = self.requests.clone();
        registry.register("cogn_http_requests", "Requests answered", requests);
        let seconds = self.seconds.clone();
        let help = "Time from request to response headers, in seconds";
        registry.register("cogn_http_request_seconds", help, seconds);
        let reloads = self.reloads.clone();
        let help = "Reloads of modules and configuration";
        registry.register("cogn_config_reloads", help, reloads);
        for (name, help, gauge) in [
            ("cogn_runs_running", "Runs in progress", &self.runs),
            ("cogn_modules", "Modules that can be run", &self.modules),
            ("cogn_connections_open", "Open connections", &self.connections),
            ("cogn_streams_open", "Open streams of runs", &self.streams),
            ("cogn_sockets_open", "Open WebSockets", &self.sockets),
        ] {
            registry.register(name, help, gauge.clone());
        }
        let bytes = self.stream_bytes.clone();
        registry.register("cogn_stream_bytes", "Bytes sent on streams", bytes);
        self
    }

    pub(crate) fn reloaded(&self, taken: bool) {
        let outcome = if taken { "taken" } else { "refused" };
        self.reloads.get_or_create(&ReloadLabel { outcome }).inc();
    }

    /// All metrics in the text format.
    pub(crate) fn render(&self, gateway: &Gateway) -> String {
        let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        self.runs.set(count(gateway.engine().running()));
        self.modules.set(count(gateway.engine().modules().iter().count()));
        let mut out = String::new();
        // Writing to a string cannot fail.
        text::encode(&mut out, &self.registry).unwrap_or_default();
        out
    }
}

/// A request in progress, counted under its route.
#[derive(Debug)]
pub(crate) struct RequestTimer {
    route: String,
    method: &'static str,
    began: Instant,
}

impl RequestTimer {
    pub(crate) fn begin(request: &Request) -> Self {
        let path = request.extensions().get::<MatchedPath>();
        Self {
            route: path.map_or_else(|| String::from("none"), |path| String::from(path.as_str())),
            method: method(request.method()),
            began: Instant::now(),
        }
    }

    pub(crate) fn end(self, metrics: &Metrics, response: &Response) {
        let (route, method) = (self.route, self.method);
        let seconds = self.began.elapsed().as_secs_f64();
        let label = RouteLabel { route };
        metrics.seconds.get_or_create(&label).observe(seconds);
        let labels = RequestLabels {
            method,
            route: label.route,
            status: response.status().as_u16(),
        };
        metrics.requests.get_or_create(&labels).inc();
    }
}

/// A client may send any method name.
fn method(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        "OPTIONS" => "OPTIONS",
        _ => "other",
    }
}
