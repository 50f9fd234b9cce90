//! What a model's name leads to: a model of the back-ends, directly or by an alias, or a module under
//! `module:NAME`. Whether the caller may have it is decided here, before anything is asked.

use std::sync::Arc;

use axum::http::StatusCode;
use module::envelope::ErrorBody;
use module::{Code, Module};
use tenancy::Caller;

use crate::response::ApiError;
use crate::route::find;
use crate::state::Gateway;

pub(super) const MODULE_PREFIX: &str = "module:";

#[derive(Debug)]
pub(super) enum Target {
    Model {
        name: String,
        /// The only back-end that may answer.
        backend: Option<String>,
    },
    Module(Arc<Module>),
}

/// What a name leads to, if anybody here answers under it.
pub(super) fn resolve(gateway: &Gateway, caller: &Caller, asked: &str) -> Result<Target, ApiError> {
    let target = resolve_alias(gateway, caller, asked)?;
    if let Target::Model { name, .. } = &target {
        let fleet = gateway.engine.fleet();
        // A back-end without a model of its own answers with any.
        let known = |own: &Option<String>| own.as_ref().is_none_or(|own| own == name);
        if !fleet.candidates().iter().any(|candidate| known(&candidate.model)) {
            return Err(unknown(asked));
        }
    }
    Ok(target)
}

/// What a name leads to; whether anybody answers under it is left to the router, which says why not.
pub(super) fn resolve_alias(gateway: &Gateway, caller: &Caller, asked: &str) -> Result<Target, ApiError> {
    let settings = gateway.settings();
    let alias = settings.aliases.get(asked);
    let name = alias.map_or(asked, |alias| alias.model.as_str());
    if let Some(module) = name.strip_prefix(MODULE_PREFIX) {
        caller.require_module(module)?;
        return Ok(Target::Module(find(gateway, module)?));
    }
    if !caller.models.allows(name) {
        let message = format!("these credentials do not allow the model `{asked}`");
        let body = ErrorBody::new(Code::E4007, message).detail("model", asked);
        return Err(ApiError::with_status(body, StatusCode::FORBIDDEN));
    }
    Ok(Target::Model {
        name: String::from(name),
        backend: alias.and_then(|alias| alias.backend.clone()),
    })
}

pub(super) fn unknown(model: &str) -> ApiError {
    let message = format!("nobody here answers as `{model}`; /v1/models lists what there is");
    ApiError::new(ErrorBody::new(Code::E4009, message).detail("reason", "model_not_found"))
}
