//! Top-level fields of a JSON object with the byte ranges of their values, so that one value can be replaced
//! in a body that otherwise stays byte for byte as received. Values are skipped with the JSON parser and not
//! kept.

use std::collections::HashSet;
use std::ops::Range;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Deserializer;

use crate::limits;

/// The fields of a body, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldRanges {
    fields: Vec<(String, Range<usize>)>,
    /// Offset behind the last value.
    end: usize,
}

impl FieldRanges {
    /// `None` if the body is not one object, has too many fields or has a duplicate field, which would be
    /// ambiguous.
    pub fn of(body: &[u8]) -> Option<Self> {
        let mut at = mark(body, 0, b'{')?;
        let mut outline = Self {
            fields: Vec::new(),
            end: at,
        };
        if let Some(behind) = mark(body, at, b'}') {
            return blank(body, behind).then_some(outline);
        }
        let mut known = HashSet::new();
        loop {
            let (name, behind) = value::<String>(body, at)?;
            at = skip(body, mark(body, behind, b':')?);
            let (_, behind) = value::<IgnoredAny>(body, at)?;
            count_step();
            if known.len() >= limits::BODY_FIELDS_MAX || !known.insert(name.clone()) {
                return None;
            }
            outline.fields.push((name, at..behind));
            outline.end = behind;
            match (mark(body, behind, b','), mark(body, behind, b'}')) {
                (Some(next), _) => at = next,
                (None, Some(last)) => return blank(body, last).then_some(outline),
                (None, None) => return None,
            }
        }
    }

    /// The byte range of a field's value.
    pub fn range(&self, name: &str) -> Option<Range<usize>> {
        let found = self.fields.iter().find(|(field, _)| {
            count_step();
            field == name
        });
        found.map(|(_, place)| place.clone())
    }

    /// The body with these fields set to these JSON values; all other bytes are unchanged.
    pub fn replace(&self, body: &[u8], changes: &[(&str, String)]) -> Vec<u8> {
        let more: usize = changes
            .iter()
            .map(|(name, value)| name.len() + value.len() + 4)
            .sum();
        let mut new = Vec::with_capacity(body.len() + more);
        let mut from = 0;
        for (name, place) in &self.fields {
            if let Some((_, value)) = changes.iter().find(|(field, _)| field == name) {
                new.extend_from_slice(&body[from..place.start]);
                new.extend_from_slice(value.as_bytes());
                from = place.end;
            }
        }
        new.extend_from_slice(&body[from..self.end]);
        let mut first = self.fields.is_empty();
        for (name, value) in changes.iter().filter(|(name, _)| self.range(name).is_none()) {
            if !std::mem::take(&mut first) {
                new.push(b',');
            }
            new.push(b'"');
            new.extend_from_slice(name.as_bytes());
            new.extend_from_slice(b"\":");
            new.extend_from_slice(value.as_bytes());
        }
        new.extend_from_slice(&body[self.end..]);
        new
    }
}

/// Counts the fields that are looked at, for the test of linear time.
fn count_step() {
    #[cfg(test)]
    tests::STEPS.with(|steps| steps.set(steps.get() + 1));
}

/// One value at this offset, and the offset behind it.
fn value<T: DeserializeOwned>(body: &[u8], at: usize) -> Option<(T, usize)> {
    let mut values = Deserializer::from_slice(body.get(at..)?).into_iter::<T>();
    let value = values.next()?.ok()?;
    Some((value, at + values.byte_offset()))
}

/// The offset behind this punctuation byte, if it is the next token.
fn mark(body: &[u8], at: usize, mark: u8) -> Option<usize> {
    let at = skip(body, at);
    (body.get(at) == Some(&mark)).then_some(at + 1)
}

fn skip(body: &[u8], at: usize) -> usize {
    let rest = body.get(at..).unwrap_or_default();
    at + rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

fn blank(body: &[u8], at: usize) -> bool {
    skip(body, at) == body.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value, json};

    use super::FieldRanges;
    use crate::limits;

    thread_local! {
        pub(super) static STEPS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
    }

    /// The steps for an object with this many fields, and whether it was accepted.
    fn steps(fields: usize) -> (usize, bool) {
        let body: Map<String, Value> = (0..fields)
            .map(|field| (format!("k{field}"), json!(field)))
            .collect();
        let body = Value::Object(body).to_string();
        STEPS.set(0);
        let outline = FieldRanges::of(body.as_bytes());
        if let Some(outline) = &outline {
            outline.replace(body.as_bytes(), &[("model", String::from("1"))]);
        }
        (STEPS.get(), outline.is_some())
    }

    #[test]
    fn duplicates_are_found_in_linear_time() {
        let half = limits::BODY_FIELDS_MAX / 2;
        let (few, many) = (steps(half), steps(2 * half));
        assert!(few.1 && many.1);
        assert!(many.0 * 10 <= few.0 * 22, "{} {}", few.0, many.0);
        let (too_many, accepted) = steps(64_000);
        assert!(!accepted && too_many <= 2 * many.0, "{too_many}");
    }

    fn replace(body: &str, changes: &[(&str, String)]) -> Option<String> {
        let outline = FieldRanges::of(body.as_bytes())?;
        String::from_utf8(outline.replace(body.as_bytes(), changes)).ok()
    }

    #[test]
    fn replaces_only_named_fields() {
        let model = [("model", String::from("\"b\""))];
        let body = " {\"model\" : \"a\", \"x\":1.50,\n\"y\":{\"model\":\"a\"}} \n";
        let changed = " {\"model\" : \"b\", \"x\":1.50,\n\"y\":{\"model\":\"a\"}} \n";
        assert_eq!(replace(body, &model).as_deref(), Some(changed));
        assert_eq!(
            replace("{\"x\":[ ]}", &model).as_deref(),
            Some("{\"x\":[ ],\"model\":\"b\"}")
        );
        assert_eq!(replace("{ }", &model).as_deref(), Some("{\"model\":\"b\" }"));
    }

    #[test]
    fn rejects_bodies_that_are_not_one_object() {
        for body in [
            "",
            "[]",
            "1",
            "{",
            "{\"a\":1",
            "{\"a\":1,}",
            "{\"a\" 1}",
            "{\"a\":1} x",
            "{\"a\":1}{}",
            "{\"a\":1,\"a\":2}",
            "{a:1}",
            "null",
        ] {
            assert_eq!(FieldRanges::of(body.as_bytes()), None, "{body}");
        }
    }

    fn object() -> impl Strategy<Value = Map<String, Value>> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".{0,8}".prop_map(Value::from),
        ];
        let any_value = leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(".{0,4}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        });
        prop::collection::btree_map(".{0,6}", any_value, 0..6).prop_map(|map| map.into_iter().collect())
    }

    proptest! {
        /// Splicing is equivalent to setting the fields in a parsed tree, compact or not.
        #[test]
        fn splicing_equals_setting_parsed_fields(map in object(), pretty in any::<bool>(), model in ".{0,6}") {
            let value = Value::Object(map.clone());
            let body = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
            let changes = [("model", json!(model).to_string()), ("stream_options", String::from("{}"))];
            let spliced: Value = serde_json::from_str(&replace(&body.unwrap(), &changes).unwrap()).unwrap();
            let mut expected = map;
            expected.insert(String::from("model"), json!(model));
            expected.insert(String::from("stream_options"), json!({}));
            prop_assert_eq!(spliced, Value::Object(expected));
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(body in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Some(outline) = FieldRanges::of(&body) {
                prop_assert!(serde_json::from_slice::<Value>(&outline.replace(&body, &[])).is_ok());
            }
        }
    }
}
