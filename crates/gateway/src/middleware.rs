//! Middleware of all requests, in one layer: metrics, CORS, origin check, authentication, and errors encoded
//! for the dialect of the client. One layer instead of five, because each would clone the router for every
//! request.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use tower::{Layer, ServiceExt, service_fn};
use tower_http::cors::CorsLayer;

use crate::inference::Vendor;
use crate::state::Gateway;
use crate::{auth, inference, metrics, origin};

#[derive(Clone, Debug)]
pub(crate) struct MiddlewareState {
    gateway: Gateway,
    cors: Arc<CorsLayer>,
}

impl MiddlewareState {
    pub(crate) fn new(gateway: Gateway) -> Self {
        Self {
            cors: Arc::new(origin::cors(gateway.clone())),
            gateway,
        }
    }
}

pub(crate) async fn handle(
    State(door): State<MiddlewareState>,
    mut request: Request,
    next: Next,
) -> Response {
    let MiddlewareState { gateway, cors } = door;
    // The one snapshot of this request.
    let gateway = gateway.current();
    request.extensions_mut().insert(gateway.clone());
    let timer = metrics::RequestTimer::begin(&request);
    // Without allowed origins, only preflight requests need the CORS layer.
    let response = if gateway.settings().cors_origins.is_empty() && request.method() != Method::OPTIONS {
        answer(&gateway, request, next).await
    } else {
        let gateway = gateway.clone();
        let inside = service_fn(move |request: Request| {
            let (gateway, next) = (gateway.clone(), next.clone());
            async move { Ok::<_, Infallible>(answer(&gateway, request, next).await) }
        });
        // Boxed: large future.
        let Ok(response) = cors.layer(inside).oneshot(request).boxed().await;
        response
    };
    timer.end(&gateway.metrics, &response);
    response
}

async fn answer(gateway: &Gateway, mut request: Request, next: Next) -> Response {
    let vendor = Vendor::of(request.uri().path(), request.headers());
    let admitted = match origin::admit(request.headers(), request.uri(), gateway.settings()) {
        Ok(()) => auth::identify(gateway, &mut request).await,
        Err(refusal) => Err(refusal),
    };
    let response = match admitted {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    };
    match vendor {
        Some(vendor) => inference::translate(vendor, response),
        None => response,
    }
}
