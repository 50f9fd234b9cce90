//! Whether the process answers, whether it should be sent work, and its figures.

use axum::extract::State;
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
            .summary("Whether the process answers at all.")
            .returns(object(&[("status", one_of(&["alive"]))])),
        Endpoint::get("/readyz", "readyz", ready)
            .summary("Whether the server takes work: not while it stops, nor without its journal.")
            .returns(object(&[("status", one_of(&["ready"]))]))
            .error_codes(&[Code::E4001]),
        Endpoint::get("/metrics", "metrics", metrics)
            .summary("Figures for Prometheus.")
            .returns_document("application/openmetrics-text"),
    ]
}

async fn alive() -> Response {
    response::resource("the server answers", json!({"status": "alive"}))
}

async fn ready(State(gateway): State<Gateway>) -> Result<Response, ApiError> {
    if gateway.stopping.is_cancelled() {
        let body = ErrorBody::new(Code::E4001, "the server is stopping");
        return Err(ApiError::new(
            body.suggest("ask another server, or this one later"),
        ));
    }
    if gateway.engine.check_journal().await.is_err() {
        let body = ErrorBody::new(Code::E4001, "the journal does not answer");
        return Err(ApiError::new(body.suggest("look at the server's log")));
    }
    Ok(response::resource(
        "the server takes work",
        json!({"status": "ready"}),
    ))
}

async fn metrics(State(gateway): State<Gateway>) -> Response {
    let text = gateway.metrics.render(&gateway);
    let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(CONTENT_TYPE, content_type)], text).into_response()
}
