//! Paths and who answers them. One file per resource; this one is the table of contents.

mod execute;
mod health;
mod modules;
mod runs;

use axum::Router;
use axum::http::{Method, StatusCode, Uri};
use axum::routing::{get, post};
use module::Code;
use module::envelope::ErrorBody;

use crate::reply::Refusal;
use crate::state::Gateway;

pub fn router(gateway: Gateway) -> Router {
    Router::new()
        .route("/healthz", get(health::alive))
        .route("/v1/modules", get(modules::list))
        .route("/v1/modules/{name}", get(modules::show))
        .route("/v1/modules/{name}/execute", post(execute::execute))
        .route("/v1/runs/{session_id}", get(runs::show))
        .route("/v1/runs/{session_id}/events", get(runs::events))
        .route("/v1/runs/{session_id}/cancel", post(runs::cancel))
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .with_state(gateway)
}

async fn no_route(uri: Uri) -> Refusal {
    Refusal::new(ErrorBody::new(
        Code::E4008,
        format!("nothing is at {}", uri.path()),
    ))
}

async fn no_method(method: Method, uri: Uri) -> Refusal {
    let body = ErrorBody::new(Code::E4008, format!("{} does not take {method}", uri.path()));
    Refusal::with_status(body, StatusCode::METHOD_NOT_ALLOWED)
}
