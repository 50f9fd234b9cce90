//! The modules that can be run here.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use module::envelope::ErrorBody;
use module::schema::Section;
use module::{Code, Module};
use serde_json::{Value, json};

use crate::reply::{self, Refusal};
use crate::state::Gateway;

pub(super) async fn list(State(gateway): State<Gateway>) -> Response {
    let modules: Vec<Value> = gateway
        .engine
        .modules()
        .iter()
        .map(|(name, module)| summary(name, module))
        .collect();
    let explain = format!("{} modules", modules.len());
    reply::resource(&explain, json!({"modules": modules}))
}

pub(super) async fn show(
    State(gateway): State<Gateway>,
    Path(name): Path<String>,
) -> Result<Response, Refusal> {
    let module = find(&gateway, &name)?;
    let mut data = summary(&name, &module);
    data["manifest"] = serde_json::to_value(&module.manifest).unwrap_or_default();
    for section in [Section::Input, Section::Data, Section::Error] {
        if let Some(schema) = module.contract.schema(section) {
            data["schema"][section.as_str()] = schema.clone();
        }
    }
    Ok(reply::resource(&module.manifest.responsibility, data))
}

/// The module of this name, or the refusal that says there is none.
pub(super) fn find(gateway: &Gateway, name: &str) -> Result<Arc<Module>, Refusal> {
    let found = gateway.engine.modules().get(name).cloned();
    found.ok_or_else(|| Refusal::new(ErrorBody::new(Code::E4006, format!("no module named `{name}`"))))
}

fn summary(name: &str, module: &Module) -> Value {
    json!({
        "name": name,
        "version": module.manifest.version,
        "responsibility": module.manifest.responsibility,
        "tier": module.manifest.tier,
        "format": module.format.as_str(),
        "response_mode": module.manifest.response.mode,
    })
}
