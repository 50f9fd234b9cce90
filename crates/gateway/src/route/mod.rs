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

async fn no_route(method: Method, uri: Uri) -> Refusal {
    let message = format!("nothing is at {}", uri.path());
    Refusal::new(no_endpoint(message, &method, &uri))
}

async fn no_method(method: Method, uri: Uri) -> Refusal {
    let message = format!("{} does not take {method}", uri.path());
    Refusal::with_status(
        no_endpoint(message, &method, &uri),
        StatusCode::METHOD_NOT_ALLOWED,
    )
}

fn no_endpoint(message: String, method: &Method, uri: &Uri) -> ErrorBody {
    ErrorBody::new(Code::E4008, message)
        .detail("method", method.as_str())
        .detail("path", uri.path())
}
