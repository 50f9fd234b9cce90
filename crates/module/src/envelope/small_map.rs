//! Looking up a member of an object that is small, as the parts of nearly every answer are. It knows nothing of what the
//! members mean.

use serde_json::{Map, Value};

/// Up to here, comparing the keys that there are costs less than hashing the one that is wanted.
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
