//! The turn that a caller takes to be answered: the same for everything that is no module.

use engine::{Admission, Permit};
use ir::Payload;
use module::Code;
use module::envelope::ErrorBody;
use tenancy::Scope;

use crate::response::ApiError;
use crate::stream_limit::ClientStreams;
use crate::state::Gateway;

/// Lets a caller in within its scopes, its models and its share of the server.
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
    let turn = gateway.limiter.acquire(caller).await?;
    Ok(Admission {
        client: caller.client.clone(),
        models: caller.models.names().map(<[String]>::to_vec),
        permit: Some(Permit::new(turn)),
        ..Admission::default()
    })
}
