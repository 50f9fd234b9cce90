//! Built-in tools: those that other runtimes of these modules offer, under the same names.

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Prefix of these names, reserved for them.
const PREFIX: &str = "cognitive_";
pub(super) const RUN: &str = "cognitive_run";
pub(super) const LIST: &str = "cognitive_list";
pub(super) const INFO: &str = "cognitive_info";

pub(super) fn is_reserved(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// Arguments of `cognitive_run`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RunArguments {
    pub(super) module: String,
    pub(super) args: Option<String>,
    pub(super) input: Option<Map<String, Value>>,
    pub(super) provider: Option<String>,
    pub(super) model: Option<String>,
}

/// Arguments of `cognitive_info`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InfoArguments {
    pub(super) module: String,
}

pub(super) fn tools() -> [Tool; 3] {
    let reads = || ToolAnnotations::new().read_only(true).open_world(false);
    let run = Tool::new(
        RUN,
        "Runs a module by name and returns its envelope: `ok` with `meta` and `data`, or not `ok` with `error`.",
        object(
            &["module"],
            &json!({
                "module": {"type": "string", "description": "The name of the module, as returned by cognitive_list."},
                "args": {"type": "string", "description": "Free text instead of an input."},
                "input": {"type": "object", "description": "The module's input."},
                "provider": {"type": "string", "description": "The only back-end that may be called."},
                "model": {"type": "string", "description": "The requested model."}
            }),
        ),
    );
    let list = Tool::new(LIST, "Lists the available modules.", object(&[], &json!({})));
    let info = Tool::new(
        INFO,
        "Describes a module: its manifest and its schemas.",
        object(&["module"], &json!({"module": {"type": "string"}})),
    );
    [
        run.with_title("Run a module"),
        list.with_title("List modules").with_annotations(reads()),
        info.with_title("Describe a module").with_annotations(reads()),
    ]
}

fn object(required: &[&str], properties: &Value) -> JsonObject {
    let schema = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false
    });
    match schema {
        Value::Object(map) => map,
        _ => JsonObject::new(),
    }
}
