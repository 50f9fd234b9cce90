//! A module as a tool: description, schemas and annotations.

use std::sync::Arc;

use engine::Modules;
use module::Module;
use module::lower::{envelope_schema, input_schema};
use module::manifest::Access;
use rmcp::model::{Tool, ToolAnnotations};

use super::confirm;

pub(super) fn tool(name: &str, module: &Arc<Module>, modules: &Modules) -> Tool {
    let manifest = &module.manifest;
    let acts = !confirm::side_effects(module, modules).is_empty();
    let annotations = ToolAnnotations::new()
        .read_only(!acts)
        .destructive(acts)
        .open_world(manifest.policies.access("network") == Access::Allow);
    Tool::new(String::from(name), description(module), input_schema(module))
        .with_title(manifest.name.clone())
        .with_raw_output_schema(Arc::new(envelope_schema(module)))
        .with_annotations(annotations)
}

fn description(module: &Module) -> String {
    let manifest = &module.manifest;
    let mut text = manifest.responsibility.trim().to_owned();
    if !text.ends_with(['.', '!', '?']) {
        text.push('.');
    }
    if !manifest.excludes.is_empty() {
        text.push_str(" Out of scope: ");
        text.push_str(&manifest.excludes.join("; "));
        text.push('.');
    }
    text.push_str(" Returns an envelope: `ok`, `meta` with confidence and risk, and `data` or `error`.");
    text
}
