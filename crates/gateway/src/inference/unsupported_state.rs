//! Stateful parameters of the OpenAI Responses API, which this server does not support. Continuing a response
//! that is not stored would lose the conversation, so it is refused; `store` only causes a warning.

use ir::Map;
use ir::event::Warning;
use serde_json::Value;

use super::error::VendorError;

const NEEDS_STATE: [&str; 2] = ["previous_response_id", "conversation"];

pub(super) fn check(body: &mut Map, warnings: &mut Vec<Warning>) -> Result<(), VendorError> {
    for key in NEEDS_STATE {
        if body.get(key).is_some_and(|value| !value.is_null()) {
            let message = format!(
                "`{key}` is not supported: responses are not stored; send the whole conversation as `input`"
            );
            return Err(VendorError::new(400, "E1004", message));
        }
    }
    if body.get("background") == Some(&Value::Bool(true)) {
        let message = "`background` is not supported: responses are synchronous";
        return Err(VendorError::new(400, "E1004", message));
    }
    if body.shift_remove("store") == Some(Value::Bool(true)) {
        let message = "`store` was ignored: responses are not stored";
        warnings.push(Warning::new("not_stored", message));
    }
    Ok(())
}
