//! The tools that are no modules: what other runtimes of these modules offer to hosts, under the names that
//! hosts know from there.

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The prefix of these names, which no module's tool has.
const PREFIX: &str = "cognitive_";
pub(super) const RUN: &str = "cognitive_run";
pub(super) const LIST: &str = "cognitive_list";
pub(super) const INFO: &str = "cognitive_info";

pub(super) fn is_reserved(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// What `cognitive_run` takes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RunArguments {
    pub(super) module: String,
    pub(super) args: Option<String>,
    pub(super) input: Option<Map<String, Value>>,
    pub(super) provider: Option<String>,
    pub(super) model: Option<String>,
}

/// What `cognitive_info` takes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InfoArguments {
    pub(super) module: String,
}

pub(super) fn tools() -> [Tool; 3] {
    let reads = || ToolAnnotations::new().read_only(true).open_world(false);
    let run = Tool::new(
        RUN,
        "Runs a module by its name and gives its envelope: `ok` with `meta` and `data`, or not `ok` with `error`.",
        object(
            &["module"],
            &json!({
                "module": {"type": "string", "description": "The module's name, as cognitive_list gives it."},
                "args": {"type": "string", "description": "Free text, in place of an input."},
                "input": {"type": "object", "description": "The module's input."},
                "provider": {"type": "string", "description": "The only back-end that may answer."},
                "model": {"type": "string", "description": "The model to ask for."}
            }),
        ),
    );
    let list = Tool::new(
        LIST,
        "Lists the modules that can be run here.",
        object(&[], &json!({})),
    );
    let info = Tool::new(
        INFO,
        "Says everything about one module: its manifest and its schemas.",
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
