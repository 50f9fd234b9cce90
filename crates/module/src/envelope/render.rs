//! Conversion of envelopes to JSON and back. Both directions keep every field.

use serde_json::{Map, Value};

use super::error::ErrorBody;
use super::meta::Meta;
use super::structure::{Profile, ShapeViolation, check_structure};
use super::{Envelope, EnvelopeBody};

impl Envelope {
    /// A failure without further information: confidence 0, high risk, the message as explanation.
    pub fn failure(error: ErrorBody) -> Self {
        Self {
            meta: Meta::of_failure(&error.message),
            body: EnvelopeBody::Failure {
                error: Box::new(error),
                partial_data: None,
            },
            annotations: Map::new(),
        }
    }

    /// Reads an envelope, or returns the reasons why the value is not one.
    pub fn from_value(value: Value, profile: Profile) -> Result<Self, Vec<ShapeViolation>> {
        let violations = check_structure(&value, profile);
        let Value::Object(map) = value else {
            return Err(violations);
        };
        if !violations.is_empty() {
            return Err(violations);
        }
        let mut meta = Map::new();
        let (mut data, mut error, mut partial_data) = (None, None, None);
        let mut annotations = Map::new();
        for (key, value) in map {
            match (key.as_str(), value) {
                ("meta", Value::Object(map)) => meta = map,
                ("data", Value::Object(map)) => data = Some(map),
                ("error", Value::Object(map)) => error = Some(map),
                ("partial_data", Value::Object(map)) => partial_data = Some(map),
                (name, value) if name.starts_with('_') => {
                    annotations.insert(key, value);
                }
                _ => {}
            }
        }
        let body = match (data, error) {
            (Some(data), _) => EnvelopeBody::Success { data },
            (None, error) => EnvelopeBody::Failure {
                error: Box::new(ErrorBody::from_map(error.unwrap_or_default())),
                partial_data,
            },
        };
        Ok(Self {
            meta: Meta::from_map(meta),
            body,
            annotations,
        })
    }

    /// The envelope as JSON, keys in the order of the documents.
    pub fn into_value(self) -> Value {
        self.into_profile(Profile::Cognitive)
    }

    /// As JSON in a given profile; `version` comes first if the profile has it.
    pub fn into_profile(self, profile: Profile) -> Value {
        let mut map = Map::new();
        if profile == Profile::Cep22 {
            map.insert(String::from("version"), Value::from("2.2"));
        }
        map.insert(String::from("ok"), Value::Bool(self.is_ok()));
        map.insert(String::from("meta"), Value::Object(self.meta.into_map()));
        match self.body {
            EnvelopeBody::Success { data } => {
                map.insert(String::from("data"), Value::Object(data));
            }
            EnvelopeBody::Failure { error, partial_data } => {
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
