//! The router. One file per resource; this one lists them.

mod api_docs;
mod capabilities;
mod compat_paths;
mod execute;
mod health;
mod modules;
mod review;
mod root;
mod runs;
mod usage;

use axum::Router;
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::from_fn_with_state;
use axum::routing::any;
use module::Code;
use module::envelope::ErrorBody;

use crate::endpoint::{Endpoint, routes};
use crate::middleware::MiddlewareState;
use crate::response::ApiError;
use crate::state::Gateway;
use crate::{inference, mcp, middleware, ws};

pub(crate) use api_docs::Description;
pub use api_docs::openapi_document;
pub(crate) use modules::{describe, find, summary, unknown_module};

pub fn router(gateway: Gateway) -> Router {
    let mcp = mcp::McpHttpService::new(&gateway);
    routes(operations())
        // MCP is not described by endpoints.
        .route(
            mcp::PATH,
            any(move |gateway, request| mcp.clone().answer(gateway, request)),
        )
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .layer(from_fn_with_state(
            MiddlewareState::new(gateway),
            middleware::handle,
        ))
}

/// All endpoints, in the order of the documents.
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
        root::operations(),
        api_docs::operations(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

async fn no_route(method: Method, uri: Uri) -> ApiError {
    let message = format!("no endpoint at {}", uri.path());
    ApiError::new(no_endpoint(message, &method, &uri))
}

async fn no_method(method: Method, uri: Uri) -> ApiError {
    let message = format!("{} does not support {method}", uri.path());
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
