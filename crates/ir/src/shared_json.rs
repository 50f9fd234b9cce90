//! Shared JSON: cloning copies a pointer, and serialisation to text happens once. For large constant values
//! such as a module's output schema.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

#[derive(Clone, Default)]
pub struct SharedJson(Arc<SharedJsonInner>);

#[derive(Default)]
struct SharedJsonInner {
    value: Value,
    text: OnceLock<String>,
}

impl SharedJson {
    /// The value as text.
    pub fn text(&self) -> &str {
        self.0.text.get_or_init(|| self.0.value.to_string())
    }
}

impl From<Value> for SharedJson {
    fn from(value: Value) -> Self {
        Self(Arc::new(SharedJsonInner {
            value,
            text: OnceLock::new(),
        }))
    }
}

impl Deref for SharedJson {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.0.value
    }
}

impl PartialEq for SharedJson {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || **self == **other
    }
}

impl fmt::Debug for SharedJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl fmt::Display for SharedJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl Serialize for SharedJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SharedJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::SharedJson;

    #[test]
    fn equals_and_serializes_as_its_value() {
        let value = json!({"b": [1, "x"], "a": null});
        let shared = SharedJson::from(value.clone());
        assert_eq!(*shared, value);
        assert_eq!(shared, SharedJson::from(value.clone()));
        assert_eq!(shared.text(), value.to_string());
        assert_eq!(json!({ "s": shared }), json!({ "s": value }));
        let read: SharedJson = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(*read, value);
    }
}
