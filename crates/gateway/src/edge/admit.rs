//! The turn that a caller takes to be answered: the same for everything that is no module.

use engine::{Admission, Permit};
use tenancy::Scope;

use crate::reply::Refusal;
use crate::seats::Client;
use crate::state::Gateway;

/// Lets a caller in within its scopes, its models and its share of the server.
pub(super) async fn admit(gateway: &Gateway, client: &Client) -> Result<Admission, Refusal> {
    let caller = &client.caller;
    caller.require(Scope::Execute)?;
    let turn = gateway.limiter.enter(caller).await?;
    Ok(Admission {
        client: caller.client.clone(),
        models: caller.models.names().map(<[String]>::to_vec),
        permit: Some(Permit::new(turn)),
        ..Admission::default()
    })
}
