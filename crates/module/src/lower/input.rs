//! Input admission: the input is an object and matches the module's schema.

use serde_json::{Map, Value};

use crate::code::Code;
use crate::envelope::{ErrorBody, check_input};
use crate::module::Module;

/// Checks a caller's input. Free text given as `$ARGUMENTS` is not validated against the schema, since it has
/// no structure; keys such as `_context` belong to the runtime and are not validated either.
pub fn admit_input(module: &Module, input: &Value) -> Result<(), Box<ErrorBody>> {
    let Value::Object(fields) = input else {
        let error = ErrorBody::new(Code::E1001, "the input is not a JSON object");
        return Err(Box::new(error.detail("stage", "input")));
    };
    if fields.contains_key("$ARGUMENTS") {
        return Ok(());
    }
    if fields.keys().any(|key| key.starts_with('_')) {
        let own = fields.iter().filter(|(key, _)| !key.starts_with('_'));
        let own: Map<String, Value> = own.map(|(key, value)| (key.clone(), value.clone())).collect();
        return check_input(module, &Value::Object(own));
    }
    check_input(module, input)
}
