//! Refuses a body or message with too many JSON values, before it is parsed.

use ir::json_values;
use ir::limits::JSON_VALUES_MAX;
use module::Code;
use module::envelope::ErrorBody;

use crate::response::ApiError;

/// Refuses a text with too many values. Text that is not JSON is refused by the parser.
pub(crate) fn check_json_values(text: &[u8]) -> Result<(), ApiError> {
    if json_values::within_limit(text) {
        return Ok(());
    }
    let error = ErrorBody::new(
        Code::E1005,
        format!("the body has more than {JSON_VALUES_MAX} JSON values"),
    );
    Err(ApiError::new(
        error
            .detail("allowed", JSON_VALUES_MAX)
            .detail("limit", "json_values_max"),
    ))
}
