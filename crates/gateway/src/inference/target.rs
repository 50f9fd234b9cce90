//! Resolution of a model name: a model of the back-ends, directly or by an alias, or a module as
//! `module:NAME`. Authorization is checked here, before any call.

use std::sync::Arc;

use axum::http::StatusCode;
use module::diagnostic::nearest;
use module::envelope::ErrorBody;
use module::{Code, Module};
use tenancy::Caller;

use super::list_models::model_names;
use crate::response::ApiError;
use crate::route::find;
use crate::state::Gateway;

pub(super) const MODULE_PREFIX: &str = "module:";

#[derive(Debug)]
pub(super) enum Target {
    Model {
        name: String,
        /// The only back-end that may be called.
        backend: Option<String>,
    },
    Module(Arc<Module>),
}

/// Resolves a name and checks that a back-end serves it.
pub(super) fn resolve(gateway: &Gateway, caller: &Caller, requested: &str) -> Result<Target, ApiError> {
    let target = resolve_alias(gateway, caller, requested)?;
    if let Target::Model { name, .. } = &target {
        let fleet = gateway.engine().fleet();
        // A back-end without a fixed model serves any.
        let known = |own: &Option<String>| own.as_ref().is_none_or(|own| own == name);
        if !fleet.candidates().iter().any(|candidate| known(&candidate.model)) {
            return Err(unknown(gateway, caller, requested));
        }
    }
    Ok(target)
}

/// Resolves a name; the router checks whether a back-end serves it.
pub(super) fn resolve_alias(gateway: &Gateway, caller: &Caller, requested: &str) -> Result<Target, ApiError> {
    let settings = gateway.settings();
    let alias = settings.aliases.get(requested);
    let name = alias.map_or(requested, |alias| alias.model.as_str());
    if let Some(module) = name.strip_prefix(MODULE_PREFIX) {
        caller.require_module(module)?;
        return Ok(Target::Module(find(gateway, caller, module)?));
    }
    if !caller.models.allows(name) {
        let message = format!("these credentials do not allow the model `{requested}`");
        let body = ErrorBody::new(Code::E4007, message).detail("model", requested);
        return Err(ApiError::with_status(body, StatusCode::FORBIDDEN));
    }
    Ok(Target::Model {
        name: String::from(name),
        backend: alias.and_then(|alias| alias.backend.clone()),
    })
}

/// The error for an unknown model, with the most similar name that the caller may use.
pub(super) fn unknown(gateway: &Gateway, caller: &Caller, model: &str) -> ApiError {
    let names = model_names(gateway, caller);
    let near = nearest(model, names.keys().map(String::as_str));
    let message = match near {
        Some(near) => format!("model `{model}` not found; did you mean `{near}`?"),
        None => format!("model `{model}` not found; see /v1/models"),
    };
    ApiError::new(ErrorBody::new(Code::E4009, message).detail("reason", "model_not_found"))
}
