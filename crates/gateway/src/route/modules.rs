//! Modules as resources.

use std::sync::Arc;

use axum::response::Response;
use module::diagnostic::nearest;
use module::envelope::ErrorBody;
use module::schema::Section;
use module::{Code, Module};
use serde_json::{Value, json};
use tenancy::{Caller, Scope};

use crate::auth::AuthenticatedCaller;
use crate::endpoint::{Endpoint, any_of_type, object, one_of, text};
use crate::extract::PathName;
use crate::response::{self, ApiError};
use crate::state::Gateway;

pub(super) fn operations() -> Vec<Endpoint> {
    let summary = || {
        object(&[
            ("name", text()),
            ("version", text()),
            ("responsibility", text()),
            ("tier", one_of(&["exec", "decision", "exploration"])),
            ("format", text()),
            ("response_mode", one_of(&["sync", "streaming", "both"])),
        ])
    };
    let mut whole = summary();
    whole["properties"]["manifest"] = any_of_type("object", "The manifest of the module.");
    whole["properties"]["schema"] = any_of_type("object", "The JSON Schemas of input, data and error.");
    vec![
        Endpoint::get("/v1/modules", "list_modules", list)
            .summary("Lists the modules.")
            .returns(object(&[(
                "modules",
                json!({"type": "array", "items": summary()}),
            )])),
        Endpoint::get("/v1/modules/{name}", "show_module", show)
            .summary("Shows a module with its manifest and schemas.")
            .path("name", "The module's name.")
            .returns(whole)
            .error_codes(&[Code::E4006]),
    ]
}

async fn list(
    gateway: Gateway,
    AuthenticatedCaller(caller): AuthenticatedCaller,
) -> Result<Response, ApiError> {
    caller.require(Scope::Read)?;
    let modules: Vec<Value> = gateway
        .engine()
        .modules()
        .iter()
        .filter(|(name, _)| caller.modules.allows(name))
        .map(|(name, module)| summary(name, module))
        .collect();
    let explain = format!("{} modules", modules.len());
    Ok(response::resource(&explain, json!({"modules": modules})))
}

async fn show(
    gateway: Gateway,
    AuthenticatedCaller(caller): AuthenticatedCaller,
    PathName(name): PathName,
) -> Result<Response, ApiError> {
    caller.require(Scope::Read)?;
    let module = find(&gateway, &caller, &name)?;
    caller.require_module(&name)?;
    let data = describe(&name, &module);
    Ok(response::resource(&module.manifest.responsibility, data))
}

/// Manifest and schemas of a module.
pub(crate) fn describe(name: &str, module: &Module) -> Value {
    let mut data = summary(name, module);
    data["manifest"] = serde_json::to_value(&module.manifest).unwrap_or_default();
    for section in [Section::Input, Section::Data, Section::Error] {
        if let Some(schema) = module.contract.schema(section) {
            data["schema"][section.as_str()] = schema.clone();
        }
    }
    data
}

/// The module with this name, or E4006 with the most similar name that the caller may use.
pub(crate) fn find(gateway: &Gateway, caller: &Caller, name: &str) -> Result<Arc<Module>, ApiError> {
    let modules = gateway.engine().modules();
    if let Some(module) = modules.get(name) {
        return Ok(module.clone());
    }
    let allowed = modules.iter().map(|(name, _)| name);
    Err(unknown_module(
        name,
        allowed.filter(|name| caller.modules.allows(name)),
    ))
}

/// The error for an unknown module, with the most similar one of `names`.
pub(crate) fn unknown_module<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> ApiError {
    let mut body = ErrorBody::new(Code::E4006, format!("no module named `{name}`"));
    if let Some(near) = nearest(name, names) {
        body.message.push_str(&format!("; did you mean `{near}`?"));
        body = body.detail("did_you_mean", near);
    }
    ApiError::new(body)
}

pub(crate) fn summary(name: &str, module: &Module) -> Value {
    json!({
        "name": name,
        "version": module.manifest.version,
        "responsibility": module.manifest.responsibility,
        "tier": module.manifest.tier,
        "format": module.format.as_str(),
        "response_mode": module.manifest.response.mode,
    })
}
