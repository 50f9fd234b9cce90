//! Whether an input is one that the module takes, before anything is asked of a model.

use jsonschema::error::ValidationErrorKind;
use serde_json::{Map, Value};

use crate::code::Code;
use crate::envelope::ErrorBody;
use crate::module::Module;
use crate::schema::Section;

/// Checks an input against the module's input schema; the first problem is the answer's error. Free
/// text given as `$ARGUMENTS` is not checked: it has no structure to check.
pub fn check_input(module: &Module, input: &Value) -> Result<(), Box<ErrorBody>> {
    let Value::Object(fields) = input else {
        let error = ErrorBody::new(Code::E1001, "the input is not a JSON object");
        return Err(Box::new(error));
    };
    if fields.contains_key("$ARGUMENTS") {
        return Ok(());
    }
    let validator = match module.contract.validator(Section::Input) {
        Ok(Some(validator)) => validator,
        Ok(None) => return Ok(()),
        Err(error) => return Err(Box::new(ErrorBody::new(Code::E1001, error.to_string()))),
    };
    let bare = without_annotations(fields);
    let Some(error) = validator.iter_errors(&bare).next() else {
        return Ok(());
    };
    let code = match error.kind() {
        ValidationErrorKind::Required { .. } => Code::E1002,
        ValidationErrorKind::Type { .. } => Code::E1003,
        ValidationErrorKind::Enum { .. } | ValidationErrorKind::Constant { .. } => Code::E1004,
        _ => Code::E1001,
    };
    let body = ErrorBody::new(code, format!("the input does not fit the module: {error}"))
        .detail("pointer", error.instance_path().to_string())
        .detail("stage", "input");
    Err(Box::new(body))
}

/// Keys such as `_context` belong to the runtime, not to the module's schema.
fn without_annotations(fields: &Map<String, Value>) -> Value {
    let own = fields.iter().filter(|(key, _)| !key.starts_with('_'));
    Value::Object(own.map(|(key, value)| (key.clone(), value.clone())).collect())
}
