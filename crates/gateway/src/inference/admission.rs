//! Admission of relayed calls: scope, allowed models, the JSON Schemas of the request and a run permit.

use engine::{Admission, Permit, admit_schemas};
use ir::Payload;
use module::Code;
use module::envelope::ErrorBody;
use tenancy::Scope;

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
    if let Payload::Chat(chat) = payload {
        admit_schemas(chat)?;
    }
    let turn = gateway.limiter.acquire(caller).await?;
    Ok(Admission {
        client: caller.client.clone(),
        models: caller.models.names().map(<[String]>::to_vec),
        permit: Some(Permit::new(turn)),
        ..Admission::default()
    })
}
