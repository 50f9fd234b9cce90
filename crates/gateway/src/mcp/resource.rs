//! Modules as resources: the list, each module as a document, and a page about it. URIs are compared with the
//! published ones and never parsed; no file is read. Prompts are not exposed: they are implementation, not
//! contract.

use rmcp::ErrorData;
use rmcp::model::{ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::Value;

use super::module_page;
use super::result::fault;
use super::view::VisibleModules;

const LIST: &str = "cognitive://modules";
const MODULE: &str = "cognitive://module/";
const DOCS: &str = "/docs";
const JSON: &str = "application/json";
const MARKDOWN: &str = "text/markdown";

pub(super) fn list(view: &VisibleModules) -> Vec<Resource> {
    let all = Resource::new(LIST, "modules")
        .with_title("All modules")
        .with_description("The available modules.")
        .with_mime_type(JSON);
    let mut resources = vec![all];
    for (_, name, module) in view.iter() {
        let about = &module.manifest.responsibility;
        let document = Resource::new(address(name), name)
            .with_title(format!("{name}: manifest and schemas"))
            .with_description(about.clone())
            .with_mime_type(JSON);
        let docs = Resource::new(format!("{}{DOCS}", address(name)), format!("{name}-docs"))
            .with_title(format!("{name}: documentation"))
            .with_description(about.clone())
            .with_mime_type(MARKDOWN);
        resources.extend([document, docs]);
    }
    resources
}

pub(super) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new(format!("{MODULE}{{name}}"), "module")
            .with_description("One module with its manifest and its schemas.")
            .with_mime_type(JSON),
        ResourceTemplate::new(format!("{MODULE}{{name}}{DOCS}"), "module-docs")
            .with_description("Documentation of one module.")
            .with_mime_type(MARKDOWN),
    ]
}

pub(super) fn read(view: &VisibleModules, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let (text, kind) = if uri == LIST {
        (pretty(&view.listing()), JSON)
    } else {
        let wanted = uri.strip_suffix(DOCS);
        let found = view.iter().find_map(|(tool, name, module)| {
            let own = address(name);
            if own == uri {
                return Some(view.description(name).map(|whole| (pretty(&whole), JSON)));
            }
            (Some(own.as_str()) == wanted).then(|| Ok((module_page::page(tool, module), MARKDOWN)))
        });
        let missing = || ErrorData::resource_not_found(format!("no resource {uri}"), None);
        found.ok_or_else(missing)?.map_err(fault)?
    };
    let contents = ResourceContents::TextResourceContents {
        uri: String::from(uri),
        mime_type: Some(String::from(kind)),
        text,
        meta: None,
    };
    Ok(ReadResourceResult::new(vec![contents]))
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// The URI of a module. All other than unreserved characters are percent-encoded.
fn address(name: &str) -> String {
    let mut address = String::from(MODULE);
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            address.push(char::from(byte));
        } else {
            address.push_str(&format!("%{byte:02X}"));
        }
    }
    address
}
