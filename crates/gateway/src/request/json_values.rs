//! The number of JSON values in a text, without parsing it. A value in memory takes many times the bytes of
//! its text, so a body with very many small values is refused before it is parsed.

use module::Code;
use module::envelope::ErrorBody;

use crate::limits;
use crate::response::ApiError;

/// Refuses a text with too many values. Text that is not JSON is refused by the parser.
pub(crate) fn check_json_values(text: &[u8]) -> Result<(), ApiError> {
    let allowed = limits::JSON_VALUES_MAX;
    // Every value takes at least one byte, and the separator behind it another.
    if text.len() / 2 <= allowed || count(text) <= allowed {
        return Ok(());
    }
    let error = ErrorBody::new(
        Code::E1005,
        format!("the body has more than {allowed} JSON values"),
    );
    Err(ApiError::new(
        error
            .detail("allowed", allowed)
            .detail("limit", "json_values_max"),
    ))
}

/// Each value but the first follows a comma, or an opening bracket that is a value itself.
fn count(text: &[u8]) -> usize {
    let (mut values, mut in_string, mut escaped) = (1, false, false);
    for byte in text {
        if in_string {
            in_string = escaped || *byte != b'"';
            escaped = !escaped && *byte == b'\\';
        } else {
            in_string = *byte == b'"';
            values += usize::from(matches!(byte, b',' | b'[' | b'{'));
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::{check_json_values, count};
    use crate::limits;

    #[test]
    fn counts_values_outside_of_strings() {
        for (text, values) in [
            ("1", 1),
            ("[1,2,3]", 4),
            (r#"[{"":0},{"a,[":"\",[{"}]"#, 5),
            (r#"{"a\\":[1,"\\"]}"#, 4),
        ] {
            assert_eq!(count(text.as_bytes()), values, "{text}");
        }
    }

    #[test]
    fn refuses_many_small_values_but_not_long_texts() {
        let many = format!("[{}0]", r#"{"":0},"#.repeat(limits::JSON_VALUES_MAX / 2));
        assert!(check_json_values(many.as_bytes()).is_err());
        let half = format!("[{}0]", r#"{"":0},"#.repeat(limits::JSON_VALUES_MAX / 4));
        assert!(check_json_values(half.as_bytes()).is_ok());
        let long = format!("\"{}\"", ",".repeat(limits::BODY_BYTES_MAX - 2));
        assert!(check_json_values(long.as_bytes()).is_ok());
    }
}
