//! What OpenAI's clients ask for besides conversation, each answered in one piece: embeddings, pictures,
//! transcripts, speech. A body is read in the client's dialect, asked of the engine, and answered in the form
//! that the client wants, whatever the back-end speaks.

mod embeddings;
mod images;
mod speech;
mod transcriptions;

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use engine::{RelayedUnary, RelayRequest};
use ir::{Payload, Phase, Request};
use serde_json::Value;
use tenancy::Scope;

use super::admission::admit;
use super::error::VendorError;
use super::multipart::MultipartForm;
use super::call_metadata::CallMetadata;
use super::target::{Target, resolve};
use crate::headers::ADAPTED_HEADER;
use crate::endpoint::Endpoint;
use crate::request::read_json;
use crate::stream_limit::ClientStreams;
use crate::state::Gateway;
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

/// Who asks, and what came along with the body. It is made before the body is read, and only for a caller who
/// may ask.
#[derive(Debug)]
struct UnaryCall {
    gateway: Gateway,
    headers: HeaderMap,
    client: ClientStreams,
}

impl FromRequestParts<Gateway> for UnaryCall {
    type Rejection = VendorError;

    async fn from_request_parts(parts: &mut Parts, gateway: &Gateway) -> Result<Self, VendorError> {
        let client = ClientStreams::of(&parts.extensions)?;
        client.caller.require(Scope::Execute)?;
        Ok(Self {
            gateway: gateway.clone(),
            headers: parts.headers.clone(),
            client,
        })
    }
}

impl UnaryCall {
    async fn read(&self, body: Body) -> Result<Value, VendorError> {
        Ok(read_json(body, self.gateway.settings().body_read).await?)
    }

    /// `files` are the fields that are files.
    async fn form(&self, body: Body, files: &[&str]) -> Result<MultipartForm, VendorError> {
        Ok(MultipartForm::read(&self.headers, body, &self.gateway, files).await?)
    }

    /// One question to the engine. When the caller leaves, this is dropped, and the back-end is hung up on.
    async fn execute(&self, payload: Payload) -> Result<RelayedUnary, VendorError> {
        self.execute_request(Request::new("", payload)).await
    }

    async fn execute_request(&self, mut request: Request) -> Result<RelayedUnary, VendorError> {
        let (gateway, client) = (&self.gateway, &self.client);
        if let Some(asked) = request.model().filter(|model| !model.is_empty()) {
            match resolve(gateway, &client.caller, asked)? {
                Target::Model { name, backend } => {
                    request.payload.rename(&name);
                    request.routing.backend = backend;
                }
                Target::Module(_) => {
                    let message = "a module takes part in conversations only";
                    return Err(VendorError::invalid(message));
                }
            }
        }
        let admission = admit(gateway, client, &request.payload).await?;
        let mut call = RelayRequest::new(request);
        call.trace = trace::of(&self.headers);
        let engine = &gateway.engine;
        let asked = engine.call(&client.caller.tenant, call, admission).await;
        asked.map_err(|failed| VendorError::from_relay(*failed))
    }
}

/// A back-end gave what belongs to another operation.
fn wrong_payload() -> VendorError {
    let message = "the back-end answered another question";
    VendorError::from(ir::Error::invalid_response(Phase::MidStream, message))
}

/// Says in the head of an answer where it came from, and what was changed on the way.
fn with_metadata(mut response: Response, asked: &RelayedUnary) -> Response {
    let receipt = CallMetadata {
        run: asked.run,
        backend: Some(asked.backend.name.clone()),
        attempts: Some(asked.attempts),
        cost_usd: asked.cost_usd.clone(),
    };
    receipt.write_headers(response.headers_mut());
    let losses = asked.answer.adaptations.iter().filter(|one| one.action.is_loss());
    let places: Vec<&str> = losses.map(|one| one.pointer.as_str()).collect();
    if !places.is_empty()
        && let Ok(places) = HeaderValue::from_str(&places.join(", "))
    {
        response.headers_mut().insert(ADAPTED_HEADER, places);
    }
    response
}
