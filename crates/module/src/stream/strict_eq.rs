//! Strict equality of values. Equality of JSON values ignores the order of keys and the sign of a zero; both
//! are visible in the printed text.

use serde_json::{Map, Number, Value};

pub(super) fn same_map(a: &Map<String, Value>, b: &Map<String, Value>) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|((k, v), (l, w))| k == l && same(v, w))
}

fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => same_map(a, b),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Number(a), Value::Number(b)) => same_number(a, b),
        (a, b) => a == b,
    }
}

fn same_number(a: &Number, b: &Number) -> bool {
    let sign = |number: &Number| number.as_f64().is_some_and(f64::is_sign_negative);
    a == b && sign(a) == sign(b)
}
