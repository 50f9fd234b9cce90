//! The canonical request. The operation selects the shape of the payload.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::adaptation::Degradation;
use crate::chat::ChatRequest;
use crate::envelope::VERSIONS;
use crate::envelope::payload::Payload;
use crate::envelope::requirements::Requirements;
use crate::envelope::routing::{PolicySpec, RoutingHints};
use crate::error::Error;
use crate::ext::Map;
use crate::operation::{Feature, Operation};
use crate::patch::{self, Patch};

#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// `None` if not set by the sender; version 1 then.
    pub version: Option<u32>,
    /// Empty if not set by the sender; the server assigns one then.
    pub request_id: String,
    pub task_id: Option<String>,
    pub meta: RequestMeta,
    pub routing: RoutingHints,
    /// As declared. [`Request::needs`] adds the requirements of the payload.
    pub requirements: Requirements,
    pub policy: Option<PolicySpec>,
    pub timeout_ms: Option<u64>,
    pub degradation: Option<Degradation>,
    /// Overrides of `degradation` by feature.
    pub degradation_overrides: BTreeMap<Feature, Degradation>,
    pub patches: Vec<Patch>,
    pub payload: Payload,
    pub extra: Map,
    /// Fields that this type does not define.
    pub rest: Map,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestMeta {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at_ms: Option<u64>,
    #[serde(flatten)]
    pub rest: Map,
}

impl RequestMeta {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Request {
    pub fn new(request_id: impl Into<String>, payload: Payload) -> Self {
        Self {
            version: Some(1),
            request_id: request_id.into(),
            task_id: None,
            meta: RequestMeta::default(),
            routing: RoutingHints::default(),
            requirements: Requirements::default(),
            policy: None,
            timeout_ms: None,
            degradation: None,
            degradation_overrides: BTreeMap::new(),
            patches: Vec::new(),
            payload,
            extra: Map::new(),
            rest: Map::new(),
        }
    }

    pub fn chat(request_id: impl Into<String>, chat: ChatRequest) -> Self {
        Self::new(request_id, Payload::Chat(Box::new(chat)))
    }

    pub fn operation(&self) -> Operation {
        self.payload.operation()
    }

    pub fn model(&self) -> Option<&str> {
        self.payload.model()
    }

    pub fn as_chat(&self) -> Option<&ChatRequest> {
        match &self.payload {
            Payload::Chat(chat) => Some(chat),
            _ => None,
        }
    }

    /// All features that a back-end must support, declared or derived from the payload.
    pub fn needs(&self) -> Requirements {
        let mut needs = Requirements::of(&self.payload).union(&self.requirements);
        for name in &self.routing.preferred_backends {
            if !needs.preferred_backends.contains(name) {
                needs.preferred_backends.push(name.clone());
            }
        }
        needs
    }

    /// The policy for a back-end that lacks `feature`.
    pub fn degradation_for(&self, feature: &Feature) -> Degradation {
        let general = self.degradation.unwrap_or_default();
        self.degradation_overrides
            .get(feature)
            .copied()
            .unwrap_or(general)
    }

    /// Whether the provider's raw response is included in the answer: `extra.raw`.
    pub fn wants_raw(&self) -> bool {
        self.extra.get("raw") == Some(&Value::Bool(true))
    }

    /// Checks constraints that deserialisation does not enforce.
    pub fn check(&self) -> Result<(), Error> {
        let version = self.version.unwrap_or(1);
        if !VERSIONS.contains(&version) {
            let message =
                format!("version {version} of the envelope is not supported; supported: {VERSIONS:?}");
            return Err(Error::invalid_request(message));
        }
        let ops = &self.requirements.required_ops;
        if !ops.is_empty() && !ops.contains(&self.operation()) {
            return Err(Error::invalid_request(
                "`required_ops` does not contain the operation itself",
            ));
        }
        patch::check(&self.patches)
    }
}

#[derive(Serialize, Deserialize)]
struct RequestJson {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    version: Option<u32>,
    #[serde(
        default,
        skip_serializing_if = "String::is_empty",
        deserialize_with = "text_or_number"
    )]
    request_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    task_id: Option<String>,
    operation: Operation,
    #[serde(default, skip_serializing_if = "RequestMeta::is_empty")]
    meta: RequestMeta,
    #[serde(default, skip_serializing_if = "RoutingHints::is_empty")]
    routing: RoutingHints,
    #[serde(default, skip_serializing_if = "Requirements::is_empty")]
    requirements: Requirements,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    policy: Option<PolicySpec>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    degradation: Option<Degradation>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    degradation_overrides: BTreeMap<Feature, Degradation>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    patches: Vec<Patch>,
    payload: Value,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    extra: Map,
    #[serde(flatten)]
    rest: Map,
}

fn text_or_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::String(text) => Ok(text),
        Value::Number(number) => Ok(number.to_string()),
        _ => Err(D::Error::custom("`request_id` must be a string or a number")),
    }
}

impl Serialize for Request {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let request = self.clone();
        RequestJson {
            version: request.version,
            request_id: request.request_id,
            task_id: request.task_id,
            operation: request.payload.operation(),
            meta: request.meta,
            routing: request.routing,
            requirements: request.requirements,
            policy: request.policy,
            timeout_ms: request.timeout_ms,
            degradation: request.degradation,
            degradation_overrides: request.degradation_overrides,
            patches: request.patches,
            payload: request.payload.to_json().map_err(serde::ser::Error::custom)?,
            extra: request.extra,
            rest: request.rest,
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Request {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = RequestJson::deserialize(deserializer)?;
        Ok(Self {
            version: json.version,
            request_id: json.request_id,
            task_id: json.task_id,
            meta: json.meta,
            routing: json.routing,
            requirements: json.requirements,
            policy: json.policy,
            timeout_ms: json.timeout_ms,
            degradation: json.degradation,
            degradation_overrides: json.degradation_overrides,
            patches: json.patches,
            payload: Payload::from_json(json.operation, json.payload).map_err(D::Error::custom)?,
            extra: json.extra,
            rest: json.rest,
        })
    }
}
