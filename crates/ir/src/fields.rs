//! Reads a JSON object field by field: known fields are removed, the remaining ones are kept by the caller.
//! A field of an unexpected type counts as unknown and remains.

use serde_json::{Number, Value};

use crate::ext::Map;

#[derive(Clone, Debug, Default)]
pub struct Fields(Map);

impl Fields {
    pub fn new(map: Map) -> Self {
        Self(map)
    }

    pub fn of(value: Value) -> Option<Self> {
        match value {
            Value::Object(map) => Some(Self(map)),
            _ => None,
        }
    }

    pub fn peek(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    pub fn peek_str(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.as_str()
    }

    /// The value of any type, including null.
    pub fn take(&mut self, key: &str) -> Option<Value> {
        self.0.shift_remove(key)
    }

    pub fn string(&mut self, key: &str) -> Option<String> {
        match self.take_if(key, Value::is_string)? {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    pub fn bool(&mut self, key: &str) -> Option<bool> {
        self.take_if(key, Value::is_boolean)?.as_bool()
    }

    pub fn u64(&mut self, key: &str) -> Option<u64> {
        self.take_if(key, Value::is_u64)?.as_u64()
    }

    pub fn u32(&mut self, key: &str) -> Option<u32> {
        let fits = |value: &Value| value.as_u64().is_some_and(|n| u32::try_from(n).is_ok());
        self.take_if(key, fits)?
            .as_u64()
            .and_then(|n| u32::try_from(n).ok())
    }

    /// A number in its original notation, so that `1` does not become `1.0`.
    pub fn number(&mut self, key: &str) -> Option<Number> {
        match self.take_if(key, Value::is_number)? {
            Value::Number(number) => Some(number),
            _ => None,
        }
    }

    pub fn array(&mut self, key: &str) -> Option<Vec<Value>> {
        match self.take_if(key, Value::is_array)? {
            Value::Array(list) => Some(list),
            _ => None,
        }
    }

    pub fn object(&mut self, key: &str) -> Option<Self> {
        Self::of(self.take_if(key, Value::is_object)?)
    }

    /// A list whose members are all strings.
    pub fn strings(&mut self, key: &str) -> Option<Vec<String>> {
        let all = |value: &Value| {
            value
                .as_array()
                .is_some_and(|list| list.iter().all(Value::is_string))
        };
        let Value::Array(list) = self.take_if(key, all)? else {
            return None;
        };
        Some(
            list.iter()
                .filter_map(|item| item.as_str().map(String::from))
                .collect(),
        )
    }

    pub fn put_back(&mut self, key: &str, value: Value) {
        self.0.insert(String::from(key), value);
    }

    /// Puts back the unknown fields of an inner object.
    pub fn keep(&mut self, key: &str, inner: Self) {
        if !inner.0.is_empty() {
            self.0.insert(String::from(key), Value::Object(inner.0));
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The unknown fields.
    pub fn rest(self) -> Map {
        self.0
    }

    fn take_if(&mut self, key: &str, fits: impl Fn(&Value) -> bool) -> Option<Value> {
        if fits(self.0.get(key)?) {
            self.0.shift_remove(key)
        } else {
            None
        }
    }
}
