//! Fields with a constant value. They are always encoded; a document without the field is encoded without it,
//! and another value is preserved.

use ir::{Dialect, Ext, Fields, Map};
use serde_json::Value;

const ABSENT: &str = "$absent";

/// Removes the constant from `fields` if present and notes its absence otherwise. `scope` distinguishes the
/// objects of one document.
pub(crate) fn take<T: ?Sized>(
    fields: &mut Fields,
    own: Dialect,
    ext: &mut Ext,
    scope: &str,
    key: &str,
    constant: &T,
) where
    Value: PartialEq<T>,
{
    match fields.peek(key) {
        Some(value) if *value == *constant => {
            fields.take(key);
        }
        Some(_) => {}
        None => note_absent(own, ext, scope, key),
    }
}

pub(crate) fn note_absent(own: Dialect, ext: &mut Ext, scope: &str, key: &str) {
    ext.push(own, ABSENT, Value::from(format!("{scope}/{key}")));
}

/// Writes the constant unless the field is set or its absence was noted. Must be called after the other
/// fields were restored.
pub(crate) fn put(
    map: &mut Map,
    own: Dialect,
    ext: &Ext,
    scope: &str,
    key: &str,
    constant: impl Into<Value>,
) {
    if !map.contains_key(key) && !is_absent(own, ext, scope, key) {
        map.insert(String::from(key), constant.into());
    }
}

pub(crate) fn is_absent(own: Dialect, ext: &Ext, scope: &str, key: &str) -> bool {
    let name = format!("{scope}/{key}");
    let list = ext.value(own, ABSENT).and_then(Value::as_array);
    list.is_some_and(|list| list.iter().any(|item| item.as_str() == Some(&name)))
}
