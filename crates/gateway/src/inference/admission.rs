//! Admission of relayed calls: scope, allowed models, the JSON Schemas of the request and a run permit.

use engine::{Admission, Permit};
use ir::{Payload, ResponseFormat};
use module::Code;
use module::envelope::ErrorBody;
use module::schema::admission;
use serde_json::Value;
use tenancy::Scope;

use crate::limit::Acquire;
use crate::response::ApiError;
use crate::state::Gateway;
use crate::stream_limit::ClientStreams;

/// Checks scope, allowed models and schemas, and waits for a run permit.
pub(super) async fn admit(
    gateway: &Gateway,
    client: &ClientStreams,
    payload: &Payload,
) -> Result<Admission, ApiError> {
    let caller = &client.caller;
    caller.require(Scope::Execute)?;
    if let (Some(_), Some(field)) = (caller.models.names(), payload.other_model()) {
        let message = format!("these credentials allow certain models only, and `{field}` may name others");
        return Err(ApiError::new(ErrorBody::new(Code::E4007, message)));
    }
    check_schemas(payload)?;
    let turn = match client.reservation.take_turn() {
        Some(Acquire::Ready(turn)) => turn,
        Some(Acquire::Queued(wait)) => wait.await?,
        None => gateway.limiter.acquire(caller).await?,
    };
    let body = client.reservation.take_body();
    Ok(Admission {
        client: caller.client.clone(),
        models: caller.models.names().map(<[String]>::to_vec),
        permit: Some(Permit::new((turn, body))),
        ..Admission::default()
    })
}

/// The schemas of a chat are converted, emulated, compiled to a grammar or forwarded: all of these can be
/// recursive, so none sees a schema that is not admitted.
fn check_schemas(payload: &Payload) -> Result<(), ApiError> {
    let Payload::Chat(chat) = payload else {
        return Ok(());
    };
    let check = |place: &str, schema: &Value| {
        admission::admit(schema).map(drop).map_err(|refusal| {
            let message = format!("the schema of {place} is not admitted: {refusal}");
            ApiError::new(ErrorBody::new(Code::E1001, message).detail("limit", refusal.limit()))
        })
    };
    if let Some(ResponseFormat::JsonSchema { schema, .. }) = &chat.response_format {
        check("the response format", schema)?;
    }
    for tool in &chat.tools {
        if let Some(schema) = &tool.parameters {
            check(&format!("the tool `{}`", tool.name), schema)?;
        }
    }
    Ok(())
}
