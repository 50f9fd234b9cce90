//! Modules as prompts that a user selects from a menu: their arguments are the input of the module, and the
//! result asks the model of the host to call the tool with it. The prompt of the module is not exposed,
//! because a reply without the contract would not be a reply of the module.

use std::sync::Arc;

use module::Module;
use module::input::assign;
use module::lower::{admit_input, input_schema};
use module::schema::resolve;
use rmcp::ErrorData;
use rmcp::model::{GetPromptResult, JsonObject, Prompt, PromptArgument, PromptMessage, Role};
use serde_json::{Map, Value, json};

use super::builtin;
use super::result::fault;
use super::view::VisibleModules;
use crate::limits;
use crate::response::ApiError;

/// Prompts of other runtimes, with the modules they map to.
const KNOWN: [(&str, &str, &[&str]); 2] = [
    ("code_review", "code", &["code-reviewer", "code-review"]),
    (
        "task_prioritize",
        "tasks",
        &["task-prioritizer", "task-prioritize"],
    ),
];

pub(super) fn list(view: &VisibleModules) -> Vec<Prompt> {
    let own = view.iter().filter_map(|(tool, _, module)| {
        let arguments = arguments(module)?;
        let about = module.manifest.responsibility.clone();
        Some(Prompt::new(tool, Some(about), Some(arguments)))
    });
    let known = KNOWN.iter().filter_map(|(name, argument, modules)| {
        let (_, module) = known(view, name, modules)?;
        let argument = PromptArgument::new(*argument).with_required(true);
        let about = module.manifest.responsibility.clone();
        Some(Prompt::new(*name, Some(about), Some(vec![argument])))
    });
    own.chain(known).collect()
}

pub(super) fn get(
    view: &VisibleModules,
    name: &str,
    given: JsonObject,
) -> Result<GetPromptResult, ErrorData> {
    let found = view.by_tool(name).filter(|module| arguments(module).is_some());
    let (module, text) = match found {
        Some(module) => (module, asking(name, &input(module, given)?)),
        None => {
            let known = KNOWN.iter().find_map(|(prompt, argument, modules)| {
                let (tool, module) = (*prompt == name).then(|| known(view, name, modules))??;
                Some((tool, module, *argument))
            });
            let unknown = || ErrorData::invalid_params(format!("unknown prompt: {name}"), None);
            let (tool, module, argument) = known.ok_or_else(unknown)?;
            (module, asking_known(tool, module, argument, &given)?)
        }
    };
    let message = PromptMessage::new_text(Role::User, text);
    Ok(GetPromptResult::new(vec![message]).with_description(module.manifest.responsibility.clone()))
}

/// The module of a well-known prompt; a module with the name of the prompt takes precedence.
fn known<'v>(view: &'v VisibleModules, prompt: &str, modules: &[&str]) -> Option<(&'v str, &'v Arc<Module>)> {
    if view.by_tool(prompt).is_some() {
        return None;
    }
    modules.iter().find_map(|name| {
        let module = view.find(name).ok()?;
        Some((view.names.tool(name)?, module))
    })
}

/// The input fields as arguments. `None` if there are too many, or if a required one is structured.
fn arguments(module: &Module) -> Option<Vec<PromptArgument>> {
    let schema = Value::Object(input_schema(module));
    let root = resolve(&schema, &schema);
    let required = root.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|list| list.iter().any(|one| one == name));
    let properties = root.get("properties").and_then(Value::as_object)?;
    let mut arguments = Vec::new();
    for (name, property) in properties {
        let property = resolve(&schema, property);
        if !is_plain(&schema, property) {
            if is_required(name) {
                return None;
            }
            continue;
        }
        let mut argument = PromptArgument::new(name).with_required(is_required(name));
        if let Some(about) = property.get("description").and_then(Value::as_str) {
            argument = argument.with_description(about);
        }
        arguments.push(argument);
    }
    (!arguments.is_empty() && arguments.len() <= limits::MCP_ARGUMENTS_MAX).then_some(arguments)
}

/// Whether a value fits in one line: a scalar or a list of scalars.
fn is_plain(document: &Value, schema: &Value) -> bool {
    match schema.get("type").and_then(Value::as_str) {
        Some("string" | "number" | "integer" | "boolean") => true,
        Some("array") => {
            let items = schema.get("items").map(|items| resolve(document, items));
            items.is_some_and(|items| is_plain(document, items) && items.get("items").is_none())
        }
        _ => schema.get("enum").is_some(),
    }
}

/// Converts the arguments by the input schema.
fn input(module: &Module, given: JsonObject) -> Result<Value, ErrorData> {
    let mut input = Map::new();
    for (name, value) in given {
        let Value::String(text) = value else {
            return Err(ErrorData::invalid_params(
                format!("`{name}` is not a string"),
                None,
            ));
        };
        // Escaped: a dot in a field name is not a path separator.
        let key = name.replace('.', "\\.");
        let wrong = |error: module::input::AssignError| ErrorData::invalid_params(error.message, None);
        assign(module, &mut input, &format!("{key}={text}")).map_err(wrong)?;
    }
    let admitted = admit_input(module, Value::Object(input)).map_err(|body| fault(ApiError::from(body)))?;
    Ok(Value::Object(admitted.input))
}

fn asking(tool: &str, input: &Value) -> String {
    let shown = serde_json::to_string_pretty(input).unwrap_or_default();
    format!(
        "Call the tool `{tool}` with this input and tell me what its answer says:\n\n```json\n{shown}\n```\n"
    )
}

fn asking_known(
    tool: &str,
    module: &Module,
    argument: &str,
    given: &JsonObject,
) -> Result<String, ErrorData> {
    let text = given.get(argument).and_then(Value::as_str);
    let text = text.ok_or_else(|| ErrorData::invalid_params(format!("`{argument}` is missing"), None))?;
    let schema = input_schema(module);
    let properties = schema.get("properties").and_then(Value::as_object);
    let takes_it = properties.is_some_and(|properties| properties.contains_key(argument));
    if takes_it && let Ok(input) = input(module, given.clone()) {
        return Ok(asking(tool, &input));
    }
    Ok(asking(
        builtin::RUN,
        &json!({"module": module.name(), "args": text}),
    ))
}
