//! What OpenAI's clients ask for besides conversation, each answered in one piece: embeddings, pictures,
//! transcripts, speech. A body is read in the client's dialect, asked of the engine, and answered in the form
//! that the client wants, whatever the back-end speaks.

mod embeddings;
mod images;
mod speech;
mod transcriptions;

use axum::http::{Extensions, HeaderMap, HeaderValue};
use axum::response::Response;
use engine::{Asked, RelayCall};
use ir::{Payload, Phase, Request};

use super::admit::admit;
use super::failure::Failure;
use super::receipt::Receipt;
use super::target::{Target, resolve};
use crate::operation::Operation;
use crate::seats::Client;
use crate::state::Gateway;
use crate::trace;

/// Tells a vendor's client what was left out of its request: the answer has no place for it.
const ADAPTED_HEADER: &str = "x-cogn-adapted";

pub(super) fn operations() -> Vec<Operation> {
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

/// Who asks, and what came along with the body.
struct Asking<'a> {
    gateway: &'a Gateway,
    headers: &'a HeaderMap,
    extensions: &'a Extensions,
}

impl Asking<'_> {
    /// One question to the engine. When the caller leaves, this is dropped, and the back-end is hung up on.
    async fn ask(&self, payload: Payload) -> Result<Asked, Failure> {
        self.ask_as(Request::new("", payload)).await
    }

    async fn ask_as(&self, mut request: Request) -> Result<Asked, Failure> {
        let client = Client::of(self.extensions)?;
        if let Some(asked) = request.model().filter(|model| !model.is_empty()) {
            match resolve(self.gateway, &client.caller, asked)? {
                Target::Model { name, backend } => {
                    request.payload.rename(&name);
                    request.routing.backend = backend;
                }
                Target::Module(_) => {
                    let message = "a module takes part in conversations only";
                    return Err(Failure::invalid(message));
                }
            }
        }
        let admission = admit(self.gateway, &client).await?;
        let mut call = RelayCall::new(request);
        call.trace = trace::of(self.headers);
        let engine = &self.gateway.engine;
        let asked = engine.ask(&client.caller.tenant, call, admission).await;
        asked.map_err(|failed| Failure::of_call(*failed))
    }
}

/// A back-end gave what belongs to another operation.
fn wrong_answer() -> Failure {
    let message = "the back-end answered another question";
    Failure::from(ir::Error::invalid_response(Phase::MidStream, message))
}

/// Says in the head of an answer where it came from, and what was changed on the way.
fn dressed(mut response: Response, asked: &Asked) -> Response {
    let receipt = Receipt {
        run: asked.run,
        backend: Some(asked.backend.name.clone()),
        attempts: Some(asked.attempts),
        cost_usd: asked.cost_usd.clone(),
    };
    receipt.put(response.headers_mut());
    let losses = asked.answer.adaptations.iter().filter(|one| one.action.is_loss());
    let places: Vec<&str> = losses.map(|one| one.pointer.as_str()).collect();
    if !places.is_empty()
        && let Ok(places) = HeaderValue::from_str(&places.join(", "))
    {
        response.headers_mut().insert(ADAPTED_HEADER, places);
    }
    response
}
