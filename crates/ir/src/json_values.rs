//! The number of JSON values in a text, without parsing it. A value in memory takes many times the bytes of
//! its text, so a text with very many small values is refused before it is parsed, wherever it is: a body, a
//! message, or a string that contains JSON itself.

use crate::limits::JSON_VALUES_MAX;

/// The values of a text. Each but the first follows a comma, or an opening bracket that is a value itself.
/// For text that is not JSON, the number means nothing.
pub fn count(text: &[u8]) -> usize {
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

/// Whether a text may be parsed.
pub fn within_limit(text: &[u8]) -> bool {
    // Every value takes at least one byte, and the separator behind it another.
    text.len() / 2 <= JSON_VALUES_MAX || count(text) <= JSON_VALUES_MAX
}

#[cfg(test)]
mod tests {
    use super::{count, within_limit};
    use crate::limits::JSON_VALUES_MAX;

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
        let many = format!("[{}0]", r#"{"":0},"#.repeat(JSON_VALUES_MAX / 2));
        assert!(!within_limit(many.as_bytes()));
        let half = format!("[{}0]", r#"{"":0},"#.repeat(JSON_VALUES_MAX / 4));
        assert!(within_limit(half.as_bytes()));
        let long = format!("\"{}\"", ",".repeat(16 * 1024 * 1024));
        assert!(within_limit(long.as_bytes()));
    }
}
