//! The model list. One document has the fields of both vendors, because the clients of either ignore unknown
//! fields.

use std::collections::BTreeMap;

use axum::Json;
use axum::response::{IntoResponse, Response};
use module::Code;
use serde_json::{Value, json};
use tenancy::{Caller, Scope};

use super::error::VendorError;
use super::target::{MODULE_PREFIX, unknown};
use super::vendor::Vendor;
use crate::auth::AuthenticatedCaller;
use crate::endpoint::{Endpoint, any_of_type, object, one_of, text};
use crate::extract::PathName;
use crate::limits::MODELS_SHOWN_MAX;
use crate::response::ApiError;
use crate::state::Gateway;

/// The vendors report a creation date, which is not known here.
const CREATED: &str = "1970-01-01T00:00:00Z";

pub(super) fn operations() -> Vec<Endpoint> {
    let model = || {
        object(&[
            ("id", text()),
            ("object", one_of(&["model"])),
            ("type", one_of(&["model"])),
            ("owned_by", text()),
            ("display_name", text()),
            ("created", any_of_type("integer", "Always 0 (unknown).")),
            ("created_at", any_of_type("string", "The same as a timestamp.")),
        ])
    };
    let list = object(&[
        ("object", one_of(&["list"])),
        ("data", json!({"type": "array", "items": model()})),
        ("has_more", json!({"const": false})),
    ]);
    vec![
        Endpoint::get("/v1/models", "list_models", list_models)
            .summary("Lists the models: of back-ends, aliases, and modules as `module:NAME`.")
            .vendor(Vendor::OpenAi)
            .returns_json(list),
        Endpoint::get("/v1/models/{*model}", "show_model", show_model)
            .summary("Shows one model.")
            .path("model", "The model's name.")
            .vendor(Vendor::OpenAi)
            .returns_json(model())
            .error_codes(&[Code::E4009]),
    ]
}

async fn list_models(
    gateway: Gateway,
    AuthenticatedCaller(caller): AuthenticatedCaller,
) -> Result<Response, ApiError> {
    let models = names(&gateway, &caller)?;
    let data: Vec<Value> = models.iter().map(|(id, owner)| describe(id, owner)).collect();
    let edge = |model: Option<&Value>| model.map_or(Value::Null, |model| model["id"].clone());
    let body = json!({
        "object": "list",
        "first_id": edge(data.first()),
        "last_id": edge(data.last()),
        "has_more": false,
        "data": data,
    });
    Ok(Json(body).into_response())
}

async fn show_model(
    gateway: Gateway,
    AuthenticatedCaller(caller): AuthenticatedCaller,
    PathName(id): PathName,
) -> Result<Response, ApiError> {
    let models = names(&gateway, &caller)?;
    let found = models.get_key_value(&id);
    let (id, owner) = found.ok_or_else(|| unknown(&gateway, &caller, &id))?;
    Ok(Json(describe(id, owner)).into_response())
}

fn describe(id: &str, owner: &str) -> Value {
    json!({
        "id": id,
        "object": "model",
        "type": "model",
        "created": 0,
        "created_at": CREATED,
        "owned_by": owner,
        "display_name": id,
    })
}

/// The error for a request without a model: names of models, and where the others are listed.
pub(super) fn model_missing(gateway: &Gateway, caller: &Caller) -> VendorError {
    let names = names(gateway, caller).unwrap_or_default();
    let shown: Vec<&str> = names.keys().map(String::as_str).take(MODELS_SHOWN_MAX).collect();
    let message = match shown.is_empty() {
        true => String::from("`model` is missing; see /v1/models"),
        false => format!("`model` is missing; name one of /v1/models: {}", shown.join(", ")),
    };
    VendorError::new(400, Code::E1002.as_str(), message)
}

/// Every model name that this caller may use, with its owner.
fn names(gateway: &Gateway, caller: &Caller) -> Result<BTreeMap<String, String>, ApiError> {
    // The scope `execute` includes the model names.
    if caller.require(Scope::Execute).is_err() {
        caller.require(Scope::Read)?;
    }
    Ok(model_names(gateway, caller))
}

/// The same without a check of the scope.
pub(super) fn model_names(gateway: &Gateway, caller: &Caller) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    let fleet = gateway.engine().fleet();
    for (at, candidate) in fleet.candidates().iter().enumerate() {
        // Includes the default model of a back-end.
        let usual = fleet
            .upstream(at)
            .and_then(|upstream| upstream.backend().model.clone());
        if let Some(model) = candidate.model.clone().or(usual)
            && candidate.unavailable.is_none()
            && caller.models.allows(&model)
        {
            names.entry(model).or_insert_with(|| candidate.kind.clone());
        }
    }
    let modules = gateway.engine().modules();
    for (name, module) in modules.iter() {
        if caller.modules.allows(name) && module.manifest.invocation.user_invocable {
            names.insert(format!("{MODULE_PREFIX}{name}"), String::from("module"));
        }
    }
    for (name, alias) in &gateway.settings().aliases {
        let allowed = match alias.model.strip_prefix(MODULE_PREFIX) {
            Some(module) => caller.modules.allows(module),
            None => caller.models.allows(&alias.model),
        };
        if allowed {
            names.insert(name.clone(), String::from("alias"));
        }
    }
    names
}
