//! The canonical response: a payload or an error, never both, and the back-end that returned it.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};

use crate::adaptation::Adaptation;
use crate::envelope::payload::ResponsePayload;
use crate::error::Error;
use crate::ext::Map;
use crate::fields::Fields;
use crate::operation::Operation;

#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    pub version: u32,
    pub request_id: String,
    pub operation: Operation,
    pub backend: Option<BackendInfo>,
    pub result: Outcome,
    /// The provider's raw response, if requested.
    pub raw: Option<Value>,
    pub adaptations: Vec<Adaptation>,
    pub rest: Map,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    Payload(Box<ResponsePayload>),
    Error(Box<Error>),
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BackendInfo {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<Value>,
    #[serde(flatten)]
    pub rest: Map,
}

impl Response {
    pub fn new(request_id: impl Into<String>, payload: ResponsePayload) -> Self {
        let operation = payload.operation();
        Self::with(request_id, operation, Outcome::Payload(Box::new(payload)))
    }

    pub fn failed(request_id: impl Into<String>, operation: Operation, error: Error) -> Self {
        Self::with(request_id, operation, Outcome::Error(Box::new(error)))
    }

    fn with(request_id: impl Into<String>, operation: Operation, result: Outcome) -> Self {
        Self {
            version: 1,
            request_id: request_id.into(),
            operation,
            backend: None,
            result,
            raw: None,
            adaptations: Vec::new(),
            rest: Map::new(),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct ResponseJson {
    #[serde(default = "first")]
    version: u32,
    #[serde(default)]
    request_id: String,
    operation: Operation,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    backend: Option<BackendInfo>,
    result: Map,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    raw: Option<Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    adaptations: Vec<Adaptation>,
    #[serde(flatten)]
    rest: Map,
}

fn first() -> u32 {
    1
}

impl Serialize for Response {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let result = match &self.result {
            Outcome::Payload(payload) => {
                json!({"payload": payload.to_json().map_err(serde::ser::Error::custom)?})
            }
            Outcome::Error(error) => json!({"error": error}),
        };
        let Value::Object(result) = result else {
            return Err(serde::ser::Error::custom("no result"));
        };
        ResponseJson {
            version: self.version,
            request_id: self.request_id.clone(),
            operation: self.operation,
            backend: self.backend.clone(),
            result,
            raw: self.raw.clone(),
            adaptations: self.adaptations.clone(),
            rest: self.rest.clone(),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Response {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = ResponseJson::deserialize(deserializer)?;
        let mut result = Fields::new(json.result);
        let result = match (result.take("payload"), result.take("error"), result.is_empty()) {
            (Some(payload), None, true) => {
                let payload =
                    ResponsePayload::from_json(json.operation, payload).map_err(D::Error::custom)?;
                Outcome::Payload(Box::new(payload))
            }
            (None, Some(error), true) => {
                Outcome::Error(Box::new(serde_json::from_value(error).map_err(D::Error::custom)?))
            }
            _ => {
                return Err(D::Error::custom(
                    "`result` must contain exactly one of `payload` and `error`",
                ));
            }
        };
        Ok(Self {
            version: json.version,
            request_id: json.request_id,
            operation: json.operation,
            backend: json.backend,
            result,
            raw: json.raw,
            adaptations: json.adaptations,
            rest: json.rest,
        })
    }
}
