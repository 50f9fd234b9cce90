//! Token counts of a request before it is sent: counted by a local model, else by the vendor, else estimated
//! and marked as such.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::http::{Extensions, HeaderMap};
use axum::response::{IntoResponse, Response};
use ir::{Dialect, Request};
use serde_json::json;
use tenancy::Scope;

use super::admission::admit;
use super::error::VendorError;
use super::list_models::model_missing;
use super::target::{Target, resolve};
use super::vendor_request::VendorRequest;
use crate::request::read_call;
use crate::state::Gateway;
use crate::stream_limit::ClientStreams;

pub(super) async fn count(
    gateway: &Gateway,
    headers: &HeaderMap,
    extensions: &Extensions,
    body: Body,
) -> Result<Response, VendorError> {
    let client = ClientStreams::of(extensions)?;
    client.caller.require(Scope::Execute)?;
    let bytes = read_call(gateway, &client, headers, body).await?;
    let mut vendor_request = VendorRequest::parse(Dialect::Anthropic, bytes, headers)?;
    let Some(model) = vendor_request.model() else {
        return Err(model_missing(gateway, &client.caller));
    };
    let backend = match resolve(gateway, &client.caller, model)? {
        Target::Model { name, backend } => {
            vendor_request.rename(&name);
            backend
        }
        Target::Module(_) => None,
    };
    let (_, chat) = vendor_request.into_parts()?;
    let mut request = Request::chat("", chat);
    request.routing.backend = backend;
    // Counting may call a back-end, so it occupies a slot of its caller like any other call.
    let _admission = admit(gateway, &client, &request.payload).await?;
    let counted = gateway.engine().count_tokens(Arc::new(request)).await;
    let mut body = json!({"input_tokens": counted.tokens});
    if counted.estimated {
        body["cogn"] = json!({"estimated": true});
    }
    Ok(Json(body).into_response())
}
