//! Input admission: the input is an object, its free text has a place, it matches the module's schema, and
//! every required field reaches a request.

use serde_json::{Map, Value};

use crate::code::Code;
use crate::envelope::{ErrorBody, check_input};
use crate::input::{FREE_TEXT_KEY, input_view, place_free_text};
use crate::module::Module;

/// The input of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct AdmittedInput {
    pub input: Map<String, Value>,
    /// Optional fields that no request of the run contains.
    pub unused: Vec<String>,
}

/// Checks a caller's input and places its free text. Keys such as `_context` belong to the runtime and are not
/// validated.
pub fn admit_input(module: &Module, input: Value) -> Result<AdmittedInput, Box<ErrorBody>> {
    let Value::Object(mut input) = input else {
        let error = ErrorBody::new(Code::E1001, "the input is not a JSON object");
        return Err(Box::new(error.detail("stage", "input")));
    };
    let text_field = place_free_text(module, &mut input)?;
    let input = validate(module, input)?;
    let required = input_view(module).map_or_else(Vec::new, |view| view.required());
    let is_required = |name: &&str| {
        required.contains(name) || *name == FREE_TEXT_KEY || text_field.as_deref() == Some(*name)
    };
    let unused = module.field_use().unused(module, &input);
    let (lost, unused): (Vec<&str>, Vec<&str>) = unused.into_iter().partition(is_required);
    if !lost.is_empty() {
        return Err(unused_error(module, &lost));
    }
    let unused = unused.into_iter().map(String::from).collect();
    Ok(AdmittedInput { input, unused })
}

/// Validates the fields that are the module's own.
fn validate(module: &Module, input: Map<String, Value>) -> Result<Map<String, Value>, Box<ErrorBody>> {
    let declares_text = input_view(module).is_some_and(|view| view.declares(FREE_TEXT_KEY));
    let is_runtime = |name: &str| name.starts_with('_') || (name == FREE_TEXT_KEY && !declares_text);
    let mut runtime = Map::new();
    let mut own = input;
    if own.keys().any(|name| is_runtime(name)) {
        (runtime, own) = own.into_iter().partition(|(name, _)| is_runtime(name));
    }
    let own = Value::Object(own);
    check_input(module, &own)?;
    let Value::Object(mut input) = own else {
        return Ok(runtime);
    };
    input.extend(runtime);
    Ok(input)
}

fn unused_error(module: &Module, lost: &[&str]) -> Box<ErrorBody> {
    let (name, listed) = (module.name(), lost.join(", "));
    let (fields, reach) = match lost {
        [_] => ("field", "reaches"),
        _ => ("fields", "reach"),
    };
    let message = match lost {
        [FREE_TEXT_KEY] => format!("the free text reaches no request of `{name}`"),
        _ => format!("the input {fields} {listed} of `{name}` {reach} no request"),
    };
    let first = lost.first().copied().unwrap_or_default();
    let placeholder = match first {
        FREE_TEXT_KEY => String::from("$ARGUMENTS"),
        name => format!("${{{name}}}"),
    };
    let error = ErrorBody::new(Code::E1002, message)
        .detail("stage", "input")
        .detail("unused", lost.to_vec())
        .suggest(format!(
            "add `{placeholder}` or `$INPUT` to the prompt of the module"
        ));
    Box::new(error)
}
