//! Paths and who answers them. One file per resource; this one is the table of contents.

mod compat_paths;
mod capabilities;
mod api_docs;
mod execute;
mod health;
mod modules;
mod review;
mod runs;
mod usage;

use axum::Router;
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::from_fn_with_state;
use axum::routing::any;
use module::Code;
use module::envelope::ErrorBody;

use crate::middleware::MiddlewareState;
use crate::endpoint::{Endpoint, routes};
use crate::response::ApiError;
use crate::state::Gateway;
use crate::{middleware, inference, mcp, ws};

pub(crate) use api_docs::Description;
pub use api_docs::openapi_document;
pub(crate) use modules::{describe, find, summary};

pub fn router(gateway: Gateway) -> Router {
    let mcp = mcp::McpHttpService::new(&gateway);
    routes(operations())
        // Its contract is MCP's own, which no list of operations can say.
        .route(mcp::PATH, any(move |request| mcp.clone().answer(request)))
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .layer(from_fn_with_state(MiddlewareState::new(gateway.clone()), middleware::handle))
        .with_state(gateway)
}

/// All that the server does, in the order in which the documents show it.
pub(crate) fn operations() -> Vec<Endpoint> {
    [
        modules::operations(),
        execute::operations(),
        runs::operations(),
        review::operations(),
        usage::operations(),
        ws::operations(),
        inference::operations(),
        capabilities::operations(),
        compat_paths::operations(),
        health::operations(),
        api_docs::operations(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

async fn no_route(method: Method, uri: Uri) -> ApiError {
    let message = format!("nothing is at {}", uri.path());
    ApiError::new(no_endpoint(message, &method, &uri))
}

async fn no_method(method: Method, uri: Uri) -> ApiError {
    let message = format!("{} does not take {method}", uri.path());
    ApiError::with_status(
        no_endpoint(message, &method, &uri),
        StatusCode::METHOD_NOT_ALLOWED,
    )
}

fn no_endpoint(message: String, method: &Method, uri: &Uri) -> ErrorBody {
    ErrorBody::new(Code::E4008, message)
        .detail("method", method.as_str())
        .detail("path", uri.path())
}
