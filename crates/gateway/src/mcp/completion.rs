//! Argument completion: names of modules in resource URIs, and enum values of an input schema.

use module::lower::input_schema;
use module::schema::resolve;
use rmcp::model::{CompleteRequestParams, CompleteResult, CompletionInfo, Reference};
use serde_json::Value;

use super::view::VisibleModules;

pub(super) fn complete(view: &VisibleModules, request: &CompleteRequestParams) -> CompleteResult {
    let words = match &request.r#ref {
        Reference::Resource(_) if request.argument.name == "name" => {
            view.iter().map(|(_, name, _)| String::from(name)).collect()
        }
        Reference::Prompt(prompt) => listed(view, &prompt.name, &request.argument.name),
        _ => Vec::new(),
    };
    let begun = &request.argument.value;
    let fitting: Vec<String> = words.into_iter().filter(|word| word.starts_with(begun)).collect();
    let total = fitting.len();
    let shown: Vec<String> = fitting.into_iter().take(CompletionInfo::MAX_VALUES).collect();
    let more = total > shown.len();
    let completion = CompletionInfo::with_pagination(shown, u32::try_from(total).ok(), more);
    completion.map(CompleteResult::new).unwrap_or_default()
}

/// The enum values of an argument.
fn listed(view: &VisibleModules, prompt: &str, argument: &str) -> Vec<String> {
    let Some(module) = view.by_tool(prompt) else {
        return Vec::new();
    };
    let schema = Value::Object(input_schema(module));
    let property = resolve(&schema, &schema)
        .get("properties")
        .and_then(|all| all.get(argument));
    let values = property.map(|property| resolve(&schema, property));
    let values = values.and_then(|property| property.get("enum")?.as_array());
    let words = values.into_iter().flatten().filter_map(Value::as_str);
    words.map(String::from).collect()
}
