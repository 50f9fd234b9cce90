//! A module run in the canonical API: the last user message is the input, the response is sent in one piece
//! when the run has ended, with its envelope in the extension.

use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use ir::Event;
use ir::adaptation::Adaptation;
use ir::fold::unfold;
use serde_json::Value;

use super::envelope::{CanonicalError, ResponseContext, module_response};
use super::module_wait;
use super::stream::{CanonicalFraming, announce};
use crate::headers::RUN_HEADER;
use crate::inference::module_model::{ModuleChat, envelope_of, error_of, outcome_of};
use crate::state::Gateway;
use crate::trace;

pub(super) async fn answer(
    call: ModuleChat,
    gateway: &Gateway,
    headers: &HeaderMap,
    named: ResponseContext,
    framing: Option<CanonicalFraming>,
    changes: Vec<Adaptation>,
) -> Result<Response, CanonicalError> {
    let begun = call.begin(gateway, headers, false).await;
    let begun = begun.map_err(|refusal| CanonicalError::refused(named.clone(), refusal))?;
    let (run, trace) = (begun.run, begun.trace);
    let response = match framing {
        None => {
            let envelope = envelope_of(begun.subscription.terminal_event().await);
            let answer = outcome_of(&envelope);
            let answer =
                answer.map_err(|error| CanonicalError::of_module(named.clone().with_run(run), error))?;
            module_response(named, run, answer, envelope, changes)
        }
        Some(framing) => {
            let say = move |envelope: &Value| encoded(framing, envelope, changes);
            let body = module_wait::stream(begun, gateway, framing.heartbeat(), say).await;
            let failed =
                |envelope: Value| CanonicalError::of_module(named.with_run(run), error_of(&envelope));
            let body = body.map_err(failed)?;
            let mut response = (framing.head(), body).into_response();
            if let Ok(run) = HeaderValue::from_str(&run.to_string()) {
                response.headers_mut().insert(RUN_HEADER, run);
            }
            response
        }
    };
    Ok(trace::write_run_header(response, trace, run))
}

fn encoded(framing: CanonicalFraming, envelope: &Value, changes: Vec<Adaptation>) -> Vec<u8> {
    let mut bytes = announce(framing, changes);
    let events = match outcome_of(envelope) {
        Ok(response) => unfold(&response),
        Err(error) => vec![Event::Error { error }],
    };
    events.iter().for_each(|event| framing.write(event, &mut bytes));
    bytes
}
