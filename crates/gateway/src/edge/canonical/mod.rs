//! The canonical edge: one address for every operation. Canonical envelopes go in and out, whatever dialect the
//! back-end speaks; what was changed on the way stands in `adaptations`. A request chooses within what the host
//! allows, never beyond.

mod envelope;
mod host;
mod stream;

use axum::body::Body;
use axum::extract::State;
use axum::http::{Extensions, HeaderMap};
use axum::response::{IntoResponse, Response};
use engine::{Part, RelayCall, Relayed};
use ir::adaptation::{Adaptation, Ledger, Party};
use ir::envelope::BackendInfo;
use ir::{Error, ErrorKind, Fold, Operation as Kind, Payload, Phase, ResponsePayload};
use serde_json::{Value, json};
use wire::vectors;

use self::envelope::{Failure, Named, read, told};
use self::stream::Framing;
use super::admit::admit;
use super::picture::in_form;
use crate::operation::Operation;
use crate::request::read_json;
use crate::seats::Client;
use crate::state::Gateway;
use crate::trace;

pub(super) fn operations() -> Vec<Operation> {
    let ask = Operation::post("/v1/canonical", "ask_canonical", ask)
        .says("Any operation, in canonical envelopes; a conversation also as a stream of events.")
        .takes(json!({
            "type": "object",
            "properties": {
                "version": {"const": 1},
                "operation": {"enum": Kind::ALL.map(Kind::as_str)},
                "payload": {"type": "object"},
            },
            "required": ["operation", "payload"],
        }))
        .fails_in("CanonicalFailure")
        .gives_canonical();
    vec![ask]
}

async fn ask(
    State(gateway): State<Gateway>,
    headers: HeaderMap,
    extensions: Extensions,
    body: Body,
) -> Response {
    let answered = answer(&gateway, &headers, &extensions, body).await;
    answered.unwrap_or_else(IntoResponse::into_response)
}

async fn answer(
    gateway: &Gateway,
    headers: &HeaderMap,
    extensions: &Extensions,
    body: Body,
) -> Result<Response, Failure> {
    let body = read_json(body, gateway.settings().body_read).await;
    let mut request = read(body.map_err(|refusal| Failure::refused(Named::default(), refusal))?)?;
    let named = Named::of(&request);
    let framing = Framing::of(headers, &request);
    let mut ledger = Ledger::new(Party::Router);
    host::narrow(&mut request, gateway, &mut ledger);
    let refused = |refusal| Failure::refused(named.clone(), refusal);
    let client = Client::of(extensions).map_err(refused)?;
    let admission = admit(gateway, &client).await.map_err(refused)?;
    let tenant = &client.caller.tenant;
    let changes = ledger.into_entries();
    match &mut request.payload {
        Payload::Realtime(_) => {
            let message = "realtime_voice is not spoken here: ask for speech_to_text and text_to_speech";
            let error = Error::new(ErrorKind::Unsupported, Phase::BeforeSend, message);
            Err(Failure::of(named, error))
        }
        Payload::Chat(chat) => {
            chat.generation.stream = Some(framing.is_some());
            let seat = match framing {
                Some(_) => {
                    let max = gateway.settings().streams_per_client_max;
                    let seat = gateway.seats.take(&client, max);
                    Some(seat.map_err(|refusal| Failure::refused(named.clone(), refusal))?)
                }
                None => None,
            };
            let mut call = RelayCall::new(request);
            call.trace = trace::of(headers);
            let relayed = gateway.engine.relay(tenant, call, admission).await;
            let relayed = relayed.map_err(|failed| Failure::failed(named.clone(), *failed))?;
            match framing {
                Some(framing) => Ok(stream::response(relayed, framing, changes, seat)),
                None => fold(named, relayed, changes).await,
            }
        }
        _ => {
            let mut call = RelayCall::new(request);
            call.trace = trace::of(headers);
            let asked = gateway.engine.ask(tenant, call, admission).await;
            let mut asked = asked.map_err(|failed| Failure::failed(named.clone(), *failed))?;
            let form = named.form.clone();
            let shaped = shape(gateway, &mut asked.answer.payload, form.as_deref()).await;
            shaped.map_err(|error| Failure::of(named.clone().with_run(asked.run), error))?;
            let backend = BackendInfo {
                name: Some(asked.backend.name.clone()),
                instance: Some(asked.instance()),
                latency_ms: Some(asked.latency_ms),
                attempts: Some(Value::from(asked.attempts)),
                ..BackendInfo::default()
            };
            let mut adaptations = changes;
            adaptations.extend(asked.answer.adaptations);
            let raw = asked.answer.raw;
            Ok(told(
                named,
                asked.run,
                backend,
                asked.answer.payload,
                adaptations,
                raw,
            ))
        }
    }
}

/// The answer in the form that was asked for, whichever the back-end gave it in.
async fn shape(gateway: &Gateway, payload: &mut ResponsePayload, form: Option<&str>) -> Result<(), Error> {
    match payload {
        ResponsePayload::Embeddings(response) => {
            for one in &mut response.embeddings {
                one.vector = vectors::in_form(&one.vector, form)?;
            }
            Ok(())
        }
        ResponsePayload::Image(response) => in_form(gateway, response, form).await,
        _ => Ok(()),
    }
}

/// The whole of a conversation's answer.
async fn fold(
    named: Named,
    mut relayed: Relayed,
    mut adaptations: Vec<Adaptation>,
) -> Result<Response, Failure> {
    let mut fold = Fold::new();
    while let Some(part) = relayed.next().await {
        if let Part::Event(event) = part {
            fold.push(event);
        }
    }
    let run = relayed.run;
    let response = fold.finish();
    let mut response = response.map_err(|error| Failure::of(named.clone().with_run(run), error))?;
    adaptations.extend(envelope::announced(&mut response));
    let backend = BackendInfo {
        name: Some(relayed.backend.name.clone()),
        attempts: Some(Value::from(relayed.attempts())),
        ..BackendInfo::default()
    };
    let payload = ResponsePayload::Chat(Box::new(response));
    Ok(told(named, run, backend, payload, adaptations, None))
}
