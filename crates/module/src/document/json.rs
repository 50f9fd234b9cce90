//! Parses JSON into values in one pass and reports duplicate keys. The recursion limit of serde_json bounds
//! the depth.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::pointer;

/// Maximum number of duplicate keys recorded; one is enough to refuse a file.
const DUPLICATES_MAX: usize = 20;

#[derive(Clone, Debug, PartialEq)]
pub struct Json {
    pub value: Value,
    pub duplicates: Vec<Duplicate>,
}

/// A key that occurs twice in one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Duplicate {
    /// Pointer of the member.
    pub pointer: String,
    pub key: String,
}

/// Why a text is not acceptable JSON. Lines and columns count from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonError {
    pub kind: JsonErrorKind,
    pub message: String,
    pub line: usize,
    pub column: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonErrorKind {
    Syntax,
    /// The text ends inside the value.
    Truncated,
    TooDeep,
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for JsonError {}

pub fn parse_json(text: &str) -> Result<Json, JsonError> {
    let duplicates = RefCell::new(Vec::new());
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let seed = JsonNode {
        path: JsonPath::Root,
        duplicates: &duplicates,
    };
    let value = seed
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value))
        .map_err(|error| describe(&error))?;
    Ok(Json {
        value,
        duplicates: duplicates.into_inner(),
    })
}

fn describe(error: &serde_json::Error) -> JsonError {
    let text = error.to_string();
    let message = text.split(" at line ").next().unwrap_or_default();
    let kind = if message.contains("recursion limit") {
        JsonErrorKind::TooDeep
    } else if error.is_eof() {
        JsonErrorKind::Truncated
    } else {
        JsonErrorKind::Syntax
    };
    JsonError {
        kind,
        message: String::from(message),
        line: error.line(),
        column: error.column(),
    }
}

/// The path from the root, as a linked list on the stack: a pointer is built only for a duplicate.
#[derive(Clone, Copy)]
enum JsonPath<'a> {
    Root,
    Key(&'a Self, &'a str),
    Index(&'a Self, usize),
}

impl JsonPath<'_> {
    fn pointer(&self) -> String {
        match self {
            Self::Root => String::new(),
            Self::Key(parent, key) => pointer::join(&parent.pointer(), key),
            Self::Index(parent, index) => pointer::join(&parent.pointer(), &index.to_string()),
        }
    }
}

struct JsonNode<'a> {
    path: JsonPath<'a>,
    duplicates: &'a RefCell<Vec<Duplicate>>,
}

impl<'de> DeserializeSeed<'de> for JsonNode<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for JsonNode<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(String::from(value)))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(JsonNode {
            path: JsonPath::Index(&self.path, list.len()),
            duplicates: self.duplicates,
        })? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let path = JsonPath::Key(&self.path, &key);
            if map.contains_key(&key) {
                let mut duplicates = self.duplicates.borrow_mut();
                if duplicates.len() < DUPLICATES_MAX {
                    duplicates.push(Duplicate {
                        pointer: path.pointer(),
                        key: key.clone(),
                    });
                }
            }
            let value = entries.next_value_seed(JsonNode {
                path,
                duplicates: self.duplicates,
            })?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}
