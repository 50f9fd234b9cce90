//! Fields that are omitted if they have no value.

use ir::Map;
use serde_json::Value;

pub(crate) fn put(map: &mut Map, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        map.insert(String::from(key), value.into());
    }
}
