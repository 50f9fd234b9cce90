//! Unary operations of the OpenAI API: embeddings, images, transcription, speech. A body is decoded in the
//! dialect of the client, executed by the engine, and answered in the form that the client requested, for
//! back-ends of any dialect.

mod embeddings;
mod images;
mod speech;
mod transcriptions;

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use engine::{RelayRequest, RelayedUnary};
use ir::{Payload, Phase, Request};
use serde_json::Value;
use tenancy::Scope;

use super::admission::admit;
use super::call_metadata::CallMetadata;
use super::error::VendorError;
use super::multipart::MultipartForm;
use super::target::{Target, resolve};
use crate::endpoint::Endpoint;
use crate::headers::ADAPTED_HEADER;
use crate::request::{parse_json, read_call, reserve_turn};
use crate::state::Gateway;
use crate::stream_limit::ClientStreams;
use crate::trace;

pub(super) fn operations() -> Vec<Endpoint> {
    [
        embeddings::operations(),
        images::operations(),
        transcriptions::operations(),
        speech::operations(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The caller and the request headers. Extracted before the body is read, and only for an authorized caller.
#[derive(Debug)]
struct UnaryCall {
    gateway: Gateway,
    headers: HeaderMap,
    client: ClientStreams,
}

impl<S: Send + Sync> FromRequestParts<S> for UnaryCall {
    type Rejection = VendorError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, VendorError> {
        let client = ClientStreams::of(&parts.extensions)?;
        client.caller.require(Scope::Execute)?;
        Ok(Self {
            gateway: Gateway::of(&parts.extensions)?,
            headers: parts.headers.clone(),
            client,
        })
    }
}

impl UnaryCall {
    async fn read(&self, body: Body) -> Result<Value, VendorError> {
        let bytes = read_call(&self.gateway, &self.client, &self.headers, body).await?;
        Ok(parse_json(&bytes)?)
    }

    /// `files` are the fields that are files.
    async fn form(&self, body: Body, files: &[&str]) -> Result<MultipartForm, VendorError> {
        let permit = self.gateway.body_budget.start_form(&self.client.owner()).await?;
        reserve_turn(&self.gateway, &self.client)?;
        let mut form = MultipartForm::read(&self.headers, body, &self.gateway, files).await?;
        form.hold(permit);
        Ok(form)
    }

    /// Executes one operation. When the client disconnects, the call is dropped and the connection to the
    /// back-end is closed.
    async fn execute(&self, payload: Payload) -> Result<RelayedUnary, VendorError> {
        self.execute_request(Request::new("", payload)).await
    }

    async fn execute_request(&self, mut request: Request) -> Result<RelayedUnary, VendorError> {
        let (gateway, client) = (&self.gateway, &self.client);
        if let Some(model) = request.model().filter(|model| !model.is_empty()) {
            match resolve(gateway, &client.caller, model)? {
                Target::Model { name, backend } => {
                    request.payload.rename(&name);
                    request.routing.backend = backend;
                }
                Target::Module(_) => {
                    let message = "a module supports only chat";
                    return Err(VendorError::invalid(message));
                }
            }
        }
        let admission = admit(gateway, client, &request.payload).await?;
        let mut call = RelayRequest::new(request);
        call.trace = trace::of(&self.headers);
        let engine = gateway.engine();
        let relayed = engine.call(&client.caller.tenant, call, admission).await;
        relayed.map_err(|failed| VendorError::from_relay(*failed))
    }
}

/// The payload belongs to another operation.
fn wrong_payload() -> VendorError {
    let message = "the back-end returned a response for another operation";
    VendorError::from(ir::Error::invalid_response(Phase::MidStream, message))
}

/// Adds call metadata and adaptations to the response headers.
fn with_metadata(mut response: Response, relayed: &RelayedUnary) -> Response {
    let receipt = CallMetadata {
        run: relayed.run,
        backend: Some(relayed.backend.name.clone()),
        attempts: Some(relayed.attempts),
        cost_usd: relayed.cost_usd.clone(),
    };
    receipt.write_headers(response.headers_mut());
    let losses = relayed
        .answer
        .adaptations
        .iter()
        .filter(|one| one.action.is_loss());
    let places: Vec<&str> = losses.map(|one| one.pointer.as_str()).collect();
    if !places.is_empty()
        && let Ok(places) = HeaderValue::from_str(&places.join(", "))
    {
        response.headers_mut().insert(ADAPTED_HEADER, places);
    }
    response
}
