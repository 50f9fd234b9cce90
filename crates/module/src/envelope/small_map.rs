//! Lookup in small objects, which most parts of an answer are. Independent of the meaning of the members.

use serde_json::{Map, Value};

/// Up to this size, comparing keys is cheaper than hashing.
const FEW: usize = 8;

pub(super) fn member<'a>(map: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    if map.len() > FEW {
        return map.get(key);
    }
    map.iter().find(|(own, _)| *own == key).map(|(_, value)| value)
}

pub(super) fn member_mut<'a>(map: &'a mut Map<String, Value>, key: &str) -> Option<&'a mut Value> {
    if map.len() > FEW {
        return map.get_mut(key);
    }
    map.iter_mut()
        .find(|(own, _)| *own == key)
        .map(|(_, value)| value)
}
