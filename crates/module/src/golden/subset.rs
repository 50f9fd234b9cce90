//! Subset comparison: objects may have additional keys, lists must match completely, numbers are compared by
//! value.

use serde_json::Value;

use super::Mismatch;
use crate::document::join;

pub(super) fn compare(expected: &Value, actual: Option<&Value>, pointer: &str, found: &mut Vec<Mismatch>) {
    let Some(actual) = actual else {
        let absent = Mismatch::new(pointer, "the value is missing");
        found.push(absent.values(Some(expected), None));
        return;
    };
    match (expected, actual) {
        (Value::Object(expected), Value::Object(actual)) => {
            for (key, value) in expected {
                compare(value, actual.get(key), &join(pointer, key), found);
            }
        }
        (Value::Array(wanted), Value::Array(items)) => {
            if wanted.len() != items.len() {
                let message = format!("the list has {} items, not {}", items.len(), wanted.len());
                found.push(Mismatch::new(pointer, message).values(Some(expected), Some(actual)));
                return;
            }
            for (index, (value, item)) in wanted.iter().zip(items).enumerate() {
                compare(value, Some(item), &join(pointer, &index.to_string()), found);
            }
        }
        _ if same(expected, actual) => {}
        _ => {
            let other = Mismatch::new(pointer, "the value differs");
            found.push(other.values(Some(expected), Some(actual)));
        }
    }
}

pub(super) fn same(expected: &Value, actual: &Value) -> bool {
    match (expected.as_f64(), actual.as_f64()) {
        (Some(expected), Some(actual)) => expected.total_cmp(&actual).is_eq() || expected == actual,
        _ => expected == actual,
    }
}
