//! The canonical API: one endpoint for all operations. Canonical envelopes in and out, for back-ends of any
//! dialect; changes on the way are listed in `adaptations`. A request can only choose within the limits of
//! the host.

mod envelope;
mod host_policy;
mod module_run;
mod stream;

use std::sync::Arc;

use axum::body::Body;
use axum::http::{Extensions, HeaderMap};
use axum::response::{IntoResponse, Response};
use engine::{Admission, RelayPart, RelayRequest, RelayResponse};
use ir::adaptation::{Adaptation, Component, Ledger};
use ir::envelope::BackendInfo;
use ir::{Error, ErrorKind, Event, Fold, Operation as Kind, Payload, Phase, Request, ResponsePayload};
use module::Module;
use serde_json::{Value, json};
use spill::MediaPlaceholders;
use tenancy::Scope;
use wire::embedding_vector;

use self::envelope::{CanonicalAnswer, CanonicalError, ResponseContext, read, success_response};
use super::admission::admit;
use super::image_output::in_form;
use super::module_model::ModuleChat;
use super::streamed_json::insert_placeholders;
use super::target::{Target, resolve_alias};
use crate::endpoint::Endpoint;
use crate::framing::Framing;
use crate::negotiate::Accept;
use crate::request::{parse_json, read_call};
use crate::response::ApiError;
use crate::state::Gateway;
use crate::stream_limit::ClientStreams;
use crate::streaming::OpenStream;
use crate::trace;

pub(super) fn operations() -> Vec<Endpoint> {
    let execute = Endpoint::post("/v1/canonical", "ask_canonical", execute)
        .summary("Executes any operation, in canonical envelopes; a chat also as a stream of events.")
        .request_body(json!({
            "type": "object",
            "properties": {
                "version": {"const": 1},
                "operation": {"enum": Kind::ALL.map(Kind::as_str)},
                "payload": {"type": "object"},
            },
            "required": ["operation", "payload"],
        }))
        .error_schema("CanonicalFailure")
        .returns_canonical();
    vec![execute]
}

async fn execute(gateway: Gateway, headers: HeaderMap, extensions: Extensions, body: Body) -> Response {
    let answered = answer(&gateway, &headers, &extensions, body).await;
    answered.unwrap_or_else(IntoResponse::into_response)
}

async fn answer(
    gateway: &Gateway,
    headers: &HeaderMap,
    extensions: &Extensions,
    body: Body,
) -> Result<Response, CanonicalError> {
    // The body is read only for an authorized caller.
    let unread = |refusal| CanonicalError::refused(ResponseContext::default(), refusal);
    let client = ClientStreams::of(extensions).map_err(unread)?;
    let may_ask = client.caller.require(Scope::Execute);
    may_ask.map_err(|denial| unread(ApiError::from(denial)))?;
    let bytes = read_call(gateway, &client, headers, body).await.map_err(unread)?;
    let body = parse_json(&bytes).map_err(unread)?;
    let mut request = read(body)?;
    drop(bytes);
    let named = ResponseContext::of(&request);
    // A chat may stream.
    let chat = request.as_chat();
    let framing = chat.and_then(|chat| Accept::of(headers).framing(chat.streams()));
    let mut ledger = Ledger::new(Component::Router);
    host_policy::apply(&mut request, framing.is_some(), gateway, &mut ledger);
    let target = match request.model().filter(|model| !model.is_empty()) {
        Some(model) => {
            let target = resolve_alias(gateway, &client.caller, model);
            Some(target.map_err(|refusal| CanonicalError::refused(named.clone(), refusal))?)
        }
        None => None,
    };
    if let Some(Target::Module(_)) = &target {
        host_policy::clear_routing(&mut request, &mut ledger);
    }
    let asking = CanonicalCall {
        gateway,
        headers,
        client,
        named,
        framing,
        wants_raw: request.wants_raw(),
        changes: ledger.into_entries(),
    };
    match target {
        Some(Target::Module(module)) => asking.run(module, request.payload).await,
        Some(Target::Model { name, backend }) => {
            request.payload.rename(&name);
            host_policy::pin_backend(&mut request.routing, backend);
            asking.relay(request).await
        }
        None => asking.relay(request).await,
    }
}

/// A decoded request with its context.
struct CanonicalCall<'a> {
    gateway: &'a Gateway,
    headers: &'a HeaderMap,
    client: ClientStreams,
    named: ResponseContext,
    framing: Option<Framing>,
    /// The raw response of the provider was requested.
    wants_raw: bool,
    /// Adaptations so far.
    changes: Vec<Adaptation>,
}

impl CanonicalCall<'_> {
    async fn relay(self, mut request: Request) -> Result<Response, CanonicalError> {
        let admission = admit(self.gateway, &self.client, &request.payload).await;
        let admission = admission.map_err(|refusal| CanonicalError::refused(self.named.clone(), refusal))?;
        match &mut request.payload {
            Payload::Realtime(_) => {
                let message = "realtime_voice is not supported; use speech_to_text and text_to_speech";
                let error = Error::new(ErrorKind::Unsupported, Phase::BeforeSend, message);
                Err(CanonicalError::of(self.named, error))
            }
            Payload::Chat(chat) => {
                chat.generation.stream = Some(self.framing.is_some());
                self.chat(request, admission).await
            }
            _ => self.unary(request, admission).await,
        }
    }

    fn call(&self, request: Request) -> RelayRequest {
        let mut call = RelayRequest::new(request);
        call.trace = trace::of(self.headers);
        call
    }

    async fn chat(self, request: Request, admission: Admission) -> Result<Response, CanonicalError> {
        let gateway = self.gateway;
        let permit = self.framing.map(|_| gateway.stream_permit(&self.client));
        let permit = permit.transpose();
        let permit = permit.map_err(|refusal| CanonicalError::refused(self.named.clone(), refusal))?;
        let call = self.call(request);
        let relayed = gateway
            .engine()
            .relay(&self.client.caller.tenant, call, admission);
        let relayed = relayed.await;
        let relayed = relayed.map_err(|failed| CanonicalError::failed(self.named.clone(), *failed))?;
        match self.framing {
            Some(framing) => {
                let open = OpenStream::new(gateway, permit);
                Ok(stream::response(relayed, framing, self.changes, open))
            }
            None => fold(self.named, relayed, self.changes, self.wants_raw).await,
        }
    }

    async fn unary(self, request: Request, admission: Admission) -> Result<Response, CanonicalError> {
        let (gateway, named) = (self.gateway, &self.named);
        let call = self.call(request);
        let relayed = gateway.engine().call(&self.client.caller.tenant, call, admission);
        let relayed = relayed.await;
        let mut relayed = relayed.map_err(|failed| CanonicalError::failed(named.clone(), *failed))?;
        let shaped = convert_output(gateway, &mut relayed.answer.payload, named.form.as_deref()).await;
        let placeholders =
            shaped.map_err(|error| CanonicalError::of(named.clone().with_run(relayed.run), error))?;
        let backend = BackendInfo {
            name: Some(relayed.backend.name.clone()),
            instance: Some(relayed.instance()),
            latency_ms: Some(relayed.latency_ms),
            attempts: Some(Value::from(relayed.attempts)),
            ..BackendInfo::default()
        };
        let mut adaptations = self.changes;
        adaptations.extend(relayed.answer.adaptations);
        let raw = relayed.answer.raw;
        if self.wants_raw && raw.is_none() {
            host_policy::note_missing_raw(&mut adaptations);
        }
        let answer = CanonicalAnswer {
            backend,
            payload: relayed.answer.payload,
            placeholders,
            adaptations,
            raw,
        };
        Ok(success_response(self.named, relayed.run, answer))
    }

    async fn run(self, module: Arc<Module>, payload: Payload) -> Result<Response, CanonicalError> {
        let Payload::Chat(chat) = payload else {
            let error = Error::invalid_request("a module supports only chat");
            return Err(CanonicalError::of(self.named, error));
        };
        let call = ModuleChat {
            client: self.client,
            module,
            chat: *chat,
            streams: self.framing.is_some(),
        };
        let (named, framing, changes) = (self.named, self.framing, self.changes);
        module_run::answer(call, self.gateway, self.headers, named, framing, changes).await
    }
}

/// Converts the payload to the requested form, and replaces media that is not in memory by placeholders.
async fn convert_output(
    gateway: &Gateway,
    payload: &mut ResponsePayload,
    form: Option<&str>,
) -> Result<MediaPlaceholders, Error> {
    match payload {
        ResponsePayload::Embeddings(response) => {
            for one in &mut response.embeddings {
                one.vector = embedding_vector::convert(&one.vector, form)?;
            }
            Ok(MediaPlaceholders::default())
        }
        ResponsePayload::Image(response) => in_form(gateway, response, form).await,
        other => insert_placeholders(other.media_mut()),
    }
}

/// Collects the response of a chat.
async fn fold(
    named: ResponseContext,
    mut relayed: RelayResponse,
    mut adaptations: Vec<Adaptation>,
    wants_raw: bool,
) -> Result<Response, CanonicalError> {
    let mut fold = Fold::new();
    let mut raw = None;
    while let Some(part) = relayed.next().await {
        match part {
            RelayPart::Event(Event::Raw { data }) => raw = Some(data),
            RelayPart::Event(event) => fold.push(event),
            // Without a vendor dialect, all parts are events.
            RelayPart::Raw(_) | RelayPart::Replay(_) => {}
        }
    }
    let run = relayed.run;
    let response = fold.finish();
    let mut response = response.map_err(|error| CanonicalError::of(named.clone().with_run(run), error))?;
    adaptations.extend(envelope::take_adaptations(&mut response));
    if wants_raw && raw.is_none() {
        host_policy::note_missing_raw(&mut adaptations);
    }
    let backend = BackendInfo {
        name: Some(relayed.backend.name.clone()),
        attempts: Some(Value::from(relayed.attempts())),
        ..BackendInfo::default()
    };
    let answer = CanonicalAnswer {
        backend,
        payload: ResponsePayload::Chat(Box::new(response)),
        placeholders: MediaPlaceholders::default(),
        adaptations,
        raw,
    };
    Ok(success_response(named, run, answer))
}
