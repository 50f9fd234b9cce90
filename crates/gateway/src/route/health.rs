//! Liveness, readiness and metrics.

use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use module::Code;
use module::envelope::ErrorBody;
use serde_json::json;

use crate::endpoint::{Endpoint, object, one_of};
use crate::response::{self, ApiError};
use crate::state::Gateway;

pub(super) fn operations() -> Vec<Endpoint> {
    vec![
        Endpoint::get("/healthz", "healthz", alive)
            .summary("Liveness: whether the process responds.")
            .returns(object(&[("status", one_of(&["alive"]))])),
        Endpoint::get("/readyz", "readyz", ready)
            .summary("Readiness: not while the server is stopping or its journal is unavailable.")
            .returns(object(&[("status", one_of(&["ready"]))]))
            .error_codes(&[Code::E4001]),
        Endpoint::get("/metrics", "metrics", metrics)
            .summary("Metrics for Prometheus.")
            .returns_document("application/openmetrics-text"),
    ]
}

async fn alive() -> Response {
    response::resource("the server is alive", json!({"status": "alive"}))
}

async fn ready(gateway: Gateway) -> Result<Response, ApiError> {
    if gateway.stopping.is_cancelled() {
        let body = ErrorBody::new(Code::E4001, "the server is stopping");
        return Err(ApiError::new(body.suggest("use another server, or retry later")));
    }
    if gateway.engine().check_journal().await.is_err() {
        let body = ErrorBody::new(Code::E4001, "the journal is unavailable");
        return Err(ApiError::new(body.suggest("see the log of the server")));
    }
    Ok(response::resource(
        "the server is ready",
        json!({"status": "ready"}),
    ))
}

async fn metrics(gateway: Gateway) -> Response {
    let text = gateway.metrics.render(&gateway);
    let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(CONTENT_TYPE, content_type)], text).into_response()
}
