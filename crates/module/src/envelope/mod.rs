//! The envelope: the only form in which an answer leaves this system. `ok` with `meta` and `data`, or
//! not `ok` with `meta` and `error`. Keys that begin with `_` are annotations of the transport; they
//! stand beside the envelope and are not part of the contract.

mod error;
mod meta;
mod structure;

use serde_json::{Map, Value};

pub use error::ErrorBody;
pub use meta::{Meta, Risk};
pub use structure::{Profile, Violation, check_structure};

/// A finished answer. `body` decides which of the two shapes it has, so a mixture cannot be built.
#[derive(Clone, Debug, PartialEq)]
pub struct Envelope {
    pub meta: Meta,
    pub body: Body,
    /// `_warnings`, `_usage` and the like, keys with their underscore.
    pub annotations: Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    Success {
        data: Map<String, Value>,
    },
    Failure {
        error: Box<ErrorBody>,
        partial_data: Option<Map<String, Value>>,
    },
}

impl Envelope {
    pub fn is_ok(&self) -> bool {
        matches!(self.body, Body::Success { .. })
    }

    pub fn data(&self) -> Option<&Map<String, Value>> {
        match &self.body {
            Body::Success { data } => Some(data),
            Body::Failure { .. } => None,
        }
    }

    pub fn error(&self) -> Option<&ErrorBody> {
        match &self.body {
            Body::Success { .. } => None,
            Body::Failure { error, .. } => Some(error),
        }
    }

    /// The envelope as JSON, keys in the order of the documents.
    pub fn into_value(self) -> Value {
        let mut map = Map::new();
        map.insert(String::from("ok"), Value::Bool(self.is_ok()));
        map.insert(String::from("meta"), Value::Object(self.meta.into_map()));
        match self.body {
            Body::Success { data } => {
                map.insert(String::from("data"), Value::Object(data));
            }
            Body::Failure { error, partial_data } => {
                map.insert(String::from("error"), Value::Object(error.into_map()));
                if let Some(partial) = partial_data {
                    map.insert(String::from("partial_data"), Value::Object(partial));
                }
            }
        }
        map.extend(self.annotations);
        Value::Object(map)
    }
}
