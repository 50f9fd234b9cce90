//! Converts the text of a final chunk to the text of its envelope without parsing: the content is copied as
//! it is. Only the exact form written by this runtime is handled; the caller parses all other text.

/// The envelope that a final chunk of this runtime's own stands for; `None` for any other text.
pub fn envelope_text(last: &str) -> Option<String> {
    let (meta, rest) = member(last.strip_prefix("{\"final\":true")?)?;
    let (data, mut rest) = member(rest)?;
    if !meta.is(",\"meta\":{") || !data.is(",\"data\":{") {
        return None;
    }
    // The first word is three bytes shorter, that of the usage one longer.
    let mut text = String::with_capacity(last.len());
    text.push_str("{\"ok\":true");
    text.push_str(meta.0);
    text.push_str(data.0);
    if let Some((usage, behind)) = member(rest)
        && let Some(value) = usage.0.strip_prefix(",\"usage\":")
    {
        text.push_str(",\"_usage\":");
        text.push_str(value);
        rest = behind;
    }
    while rest != "}" {
        let (annotation, behind) = member(rest)?;
        // Anything else would not be copied, or take the place of what has been.
        if !annotation.is(",\"_") || annotation.is(",\"_usage\"") {
            return None;
        }
        text.push_str(annotation.0);
        rest = behind;
    }
    text.push('}');
    Some(text)
}

/// A comma, a key and a value, as they stand in the text.
#[derive(Clone, Copy)]
struct Member<'a>(&'a str);

impl Member<'_> {
    fn is(self, start: &str) -> bool {
        self.0.starts_with(start)
    }
}

/// The next member of an object, and what stands behind it.
fn member(text: &str) -> Option<(Member<'_>, &str)> {
    let bytes = text.as_bytes();
    if !bytes.starts_with(b",\"") {
        return None;
    }
    let (mut at, mut depth) = (1, 0_usize);
    loop {
        match bytes.get(at)? {
            b'"' => at = string_end(bytes, at + 1)?,
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth > 0 => depth -= 1,
            b'}' | b']' | b',' if depth == 0 => break,
            _ => {}
        }
        at += 1;
    }
    text.split_at_checked(at).map(|(own, rest)| (Member(own), rest))
}

/// Where the string ends that goes on at `at`: the place of its last quotation mark.
fn string_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        match bytes[at] {
            b'"' => return Some(at),
            _ => at += 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::envelope_text;
    use crate::stream::{Chunk, envelope_of};

    fn object(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(map) => map,
            _ => Map::new(),
        }
    }

    fn agree(chunk: Chunk) {
        let text = envelope_text(&serde_json::to_string(&chunk).unwrap());
        assert_eq!(text, envelope_of(chunk).map(|envelope| envelope.to_string()));
    }

    #[test]
    fn the_text_is_that_of_the_envelope() {
        let nasty = json!({"a\"b": "},{\\\"usage\":\\", "": [[], {}, [1.5e300, -0.0, null, "\\"]], "usage": "\u{1f600}\n"});
        for usage in [None, Some(json!({"total_tokens": 3})), Some(Value::Null)] {
            for annotations in [
                json!({}),
                json!({"_warnings": [nasty.clone()], "_x\"": {"_usage": 1}}),
            ] {
                for data in [json!({}), nasty.clone()] {
                    agree(Chunk::Final {
                        meta: object(json!({"confidence": 0.1, "more": nasty.clone()})),
                        data: object(data),
                        usage: usage.clone(),
                        annotations: object(annotations.clone()),
                    });
                }
            }
        }
    }

    #[test]
    fn what_cannot_be_copied_is_left_alone() {
        for text in [
            "",
            "{\"final\":true",
            "{\"final\":true}",
            "{\"final\":true,\"data\":{},\"meta\":{}}",
            "{\"final\":true,\"meta\":{},\"data\":{},\"_usage\":{}}",
            "{\"final\":true,\"meta\":{},\"data\":{},\"other\":{}}",
            "{\"final\":true,\"meta\":{},\"data\":[]}",
            "{\"final\":true,\"meta\":{},\"data\":{\"a\":\"",
            "{\"final\":true,\"meta\":{},\"data\":{\"a\":\"\\",
            "{\"final\":true,\"meta\":{},\"data\":{}}}",
            "{\"ok\":false,\"error\":{}}",
        ] {
            assert_eq!(envelope_text(text), None, "{text}");
        }
    }
}
