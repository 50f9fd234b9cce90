//! Selection of test modules: which of the modules that a server lists fit which check, and with which
//! input.

use serde_json::{Map, Value, json};

use super::check::Capability;
use super::request::ServerRequest;
use super::response::ServerResponse;
use super::{fixtures, minimal_input::sample, png};

const MIB: f64 = 1024.0 * 1024.0;
/// Larger limits are not tested: an image beyond them would exceed the size of a request.
const TRIED_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// A module as the server describes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListedModule {
    pub name: String,
    mode: Option<String>,
    pictures: bool,
    image_bytes: Option<u64>,
    schema: Option<Value>,
    input: Option<Value>,
}

/// A module with a valid input for it.
#[derive(Clone, Debug, PartialEq)]
pub struct TestModule {
    pub name: String,
    pub input: Value,
    /// JSON pointer to the image in the input.
    picture: Option<String>,
    image_bytes: Option<u64>,
}

/// The candidate modules, from which one is chosen per required capability.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TestModules(Vec<ListedModule>);

impl ListedModule {
    /// From the row of the module list and, if available, the full description. `input` is the input given
    /// by the operator.
    pub fn read(name: &str, described: &[&Value], input: Option<Value>) -> Self {
        let find = |pointer: &str| described.iter().find_map(|value| value.pointer(pointer));
        let mode = find("/response_mode").or_else(|| find("/manifest/response/mode"));
        let takes = find("/manifest/modalities/input").and_then(Value::as_array);
        let limit = find("/manifest/modalities/constraints/max_image_size_mb").and_then(Value::as_f64);
        Self {
            name: String::from(name),
            mode: mode.and_then(Value::as_str).map(String::from),
            pictures: takes.is_some_and(|kinds| kinds.iter().any(|kind| kind == "image")),
            image_bytes: limit.map(|mib| (mib.clamp(0.0, 1_024.0) * MIB) as u64),
            schema: find("/schema/input").cloned(),
            input,
        }
    }

    fn serves(&self, need: Capability) -> bool {
        let mode = self.mode.as_deref();
        match need {
            // If the server does not declare the mode, the operator's choice of the module is trusted.
            Capability::Both => mode == Some("both") || (mode.is_none() && self.input.is_some()),
            Capability::Sync => mode == Some("sync"),
            Capability::Streaming => mode == Some("streaming"),
            Capability::Image => self.pictures,
        }
    }

    fn subject(&self, need: Capability) -> Option<TestModule> {
        if !self.serves(need) {
            return None;
        }
        let known = self.input.clone().or_else(|| fixtures::input(&self.name));
        let (input, picture) = match need {
            Capability::Image => {
                let input = known.or_else(|| self.with_picture())?;
                let place = image_pointer(&input, String::new())?;
                (input, Some(place))
            }
            Capability::Both | Capability::Sync | Capability::Streaming => {
                let input = known.or_else(|| sample(self.schema.as_ref()?))?;
                // Checks that do not concern media must not depend on it.
                (image_pointer(&input, String::new()).is_none()).then_some((input, None))?
            }
        };
        Some(TestModule {
            name: self.name.clone(),
            input,
            picture,
            image_bytes: self.image_bytes,
        })
    }

    /// An input with an image in the field for images, which is identified by its name.
    fn with_picture(&self) -> Option<Value> {
        let mut schema = self.schema.clone()?;
        let properties = schema.get("properties")?.as_object()?;
        let called = |name: &&String| {
            let name = name.to_lowercase();
            ["image", "picture", "photo", "screenshot"]
                .iter()
                .any(|word| name.contains(word))
        };
        let field = properties.keys().find(called)?.clone();
        let many = properties.get(&field)?.get("type") == Some(&json!("array"));
        let images = if many { json!([png::good()]) } else { png::good() };
        schema["properties"][&field] = json!({"const": images});
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        if !required.contains(&json!(field)) {
            let more: Vec<Value> = required.into_iter().chain([json!(field)]).collect();
            schema["required"] = Value::Array(more);
        }
        sample(&schema)
    }
}

/// The pointer to the first object that has the form of media.
fn image_pointer(value: &Value, at: String) -> Option<String> {
    match value {
        Value::Object(map) if is_media(map) => Some(at),
        Value::Object(map) => map.iter().find_map(|(key, inner)| {
            let key = key.replace('~', "~0").replace('/', "~1");
            image_pointer(inner, format!("{at}/{key}"))
        }),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .find_map(|(index, inner)| image_pointer(inner, format!("{at}/{index}"))),
        _ => None,
    }
}

fn is_media(map: &Map<String, Value>) -> bool {
    let kind = map.get("type").and_then(Value::as_str).unwrap_or_default();
    ["base64", "url", "file", "upload_ref"].contains(&kind)
}

impl TestModules {
    /// Sorts the fixture modules first: with them every check can run.
    pub fn new(mut listed: Vec<ListedModule>) -> Self {
        listed.sort_by_key(|module| fixtures::input(&module.name).is_none());
        Self(listed)
    }

    pub fn choose(&self, need: Capability) -> Option<TestModule> {
        self.0.iter().find_map(|module| module.subject(need))
    }
}

impl TestModule {
    /// The first request; its response shows whether the module is usable for the checks.
    pub fn probe_request(&self) -> ServerRequest {
        self.execute().header("accept", "application/json")
    }

    /// Why the module is unsuitable, if its run fails with a valid envelope. All else is left to the checks.
    pub fn unsuitable_reason(answer: &ServerResponse) -> Option<String> {
        let code = answer.code()?;
        // A module without complete answers or a server without image support has checks of its own.
        let expected = ["E4010", "E4011"].contains(&code.as_str());
        (!expected && answer.envelope().is_ok()).then(|| format!("the run failed: {}", answer.summary()))
    }

    /// Runs the module on its input.
    pub(super) fn execute(&self) -> ServerRequest {
        self.execute_with(&json!({}))
    }

    /// With further top-level keys: `_options`, `_recovery`.
    pub(super) fn execute_with(&self, more: &Value) -> ServerRequest {
        self.execute_on(&self.input, more)
    }

    pub(super) fn execute_on(&self, input: &Value, more: &Value) -> ServerRequest {
        let mut body = json!({"input": input});
        for (key, value) in more.as_object().into_iter().flatten() {
            body[key] = value.clone();
        }
        ServerRequest::post(format!("/v1/modules/{}/execute", self.name), body)
            .header("content-type", "application/json")
    }

    /// The same as server-sent events.
    pub(super) fn stream(&self) -> ServerRequest {
        self.stream_with(&json!({}))
    }

    pub(super) fn stream_with(&self, more: &Value) -> ServerRequest {
        self.execute_with(more).header("accept", "text/event-stream")
    }

    /// The input with its image replaced by `item`.
    pub(super) fn with_image(&self, item: Value) -> Value {
        let mut input = self.input.clone();
        if let Some(place) = self.picture.as_ref().and_then(|at| input.pointer_mut(at)) {
            *place = item;
        }
        input
    }

    /// The image size limit, if a larger image still fits into a request.
    pub(super) fn image_bytes(&self) -> Option<u64> {
        self.image_bytes.filter(|bytes| *bytes <= TRIED_BYTES_MAX)
    }
}
