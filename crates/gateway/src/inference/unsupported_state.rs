//! What OpenAI's Responses keep on their server and this one does not. Going on from an answer that nobody
//! kept would lose the conversation without a word, so it is refused; a wish to keep one is only noted.

use ir::Map;
use ir::event::Warning;
use serde_json::Value;

use super::error::VendorError;

const NEEDS_STATE: [&str; 2] = ["previous_response_id", "conversation"];

pub(super) fn check(body: &mut Map, warnings: &mut Vec<Warning>) -> Result<(), VendorError> {
    for key in NEEDS_STATE {
        if body.get(key).is_some_and(|value| !value.is_null()) {
            let message = format!(
                "`{key}` is not supported: no answers are kept here; send the whole conversation as `input`"
            );
            return Err(VendorError::new(400, "E1004", message));
        }
    }
    if body.get("background") == Some(&Value::Bool(true)) {
        let message = "`background` is not supported: answers are given while the caller waits";
        return Err(VendorError::new(400, "E1004", message));
    }
    if body.shift_remove("store") == Some(Value::Bool(true)) {
        let message = "`store` was ignored: no answers are kept here";
        warnings.push(Warning::new("not_stored", message));
    }
    Ok(())
}
