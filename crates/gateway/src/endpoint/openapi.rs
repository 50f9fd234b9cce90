//! The OpenAPI 3.1 document of a list of endpoints. Statuses follow from the registry of codes: an endpoint
//! only declares its codes.

use std::collections::BTreeMap;

use module::Code;
use serde_json::{Map, Value, json};

use super::schema::components;
use super::{Endpoint, Method, Parameter, ParameterIn, SuccessResponse};

/// Error codes of all endpoints: internal error, overload, access.
const COMMON: [Code; 3] = [Code::E4000, Code::E4002, Code::E4007];

pub(crate) fn document(operations: &[Endpoint]) -> Value {
    let mut paths = Map::new();
    for operation in operations {
        let path = paths.entry(render(operation.path)).or_insert_with(|| json!({}));
        let verb = match operation.method {
            Method::Get => "get",
            Method::Post => "post",
        };
        path[verb] = describe(operation);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "cogn",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "AI modules as resources. Every JSON response is an envelope; the code of an error determines its status.",
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"}
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": components(),
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}
        },
        "security": [{}, {"key": []}]
    })
}

/// A path in OpenAPI syntax, which has no wildcard parameters.
pub(super) fn render(path: &str) -> String {
    path.replace("{*", "{")
}

fn describe(operation: &Endpoint) -> Value {
    let mut value = json!({
        "operationId": operation.id,
        "summary": operation.summary,
        "responses": responses(operation),
    });
    if !operation.parameters.is_empty() {
        value["parameters"] = operation.parameters.iter().map(parameter).collect();
    }
    if let Some(schema) = &operation.body {
        value["requestBody"] = json!({
            "required": true,
            "content": {operation.body_type: {"schema": schema}}
        });
    }
    value
}

fn parameter(parameter: &Parameter) -> Value {
    let place = match parameter.place {
        ParameterIn::Path => "path",
        ParameterIn::Query => "query",
        ParameterIn::Header => "header",
    };
    json!({
        "name": parameter.name,
        "in": place,
        "description": parameter.about,
        "required": parameter.place == ParameterIn::Path,
        "schema": parameter.schema,
    })
}

fn responses(operation: &Endpoint) -> Value {
    let mut responses = Map::new();
    let (status, good) = good(&operation.answer);
    responses.insert(String::from(status), good);
    if let Some(schema) = operation.failure {
        let reference = format!("#/components/schemas/{schema}");
        let failure = json!({
            "description": "the error, in the format of the client; the status gives its class",
            "content": {"application/json": {"schema": {"$ref": reference}}}
        });
        for statuses in ["4XX", "5XX"] {
            responses.insert(String::from(statuses), failure.clone());
        }
        return Value::Object(responses);
    }
    let mut statuses: BTreeMap<u16, Vec<Code>> = BTreeMap::new();
    for code in operation.codes.iter().chain(&COMMON) {
        let codes = statuses.entry(code.http_status()).or_default();
        if !codes.contains(code) {
            codes.push(*code);
        }
        // The same code is used for missing and for insufficient credentials.
        if *code == Code::E4007 {
            statuses.entry(401).or_default().push(*code);
        }
        // Per caller and in total.
        if *code == Code::E4002 {
            statuses.entry(503).or_default().push(*code);
        }
    }
    for (status, code) in &operation.exceptions {
        statuses.entry(*status).or_default().push(*code);
    }
    for (status, codes) in statuses {
        let lines: Vec<String> = codes
            .iter()
            .map(|code| format!("{code} {}: {}", code.name(), code.summary()))
            .collect();
        let failure = json!({
            "description": lines.join("; "),
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Failure"}}}
        });
        responses.insert(status.to_string(), failure);
    }
    Value::Object(responses)
}

/// Status and description of a successful response.
fn good(answer: &SuccessResponse) -> (&'static str, Value) {
    let success = json!({"$ref": "#/components/schemas/Success"});
    // OpenAPI 3.1 has no schema for a sequence of events.
    let stream = json!({"schema": {}});
    match answer {
        SuccessResponse::Resource(data) => {
            let schema = json!({"allOf": [success, {"properties": {"data": data}}]});
            let content = json!({"application/json": {"schema": schema}});
            ("200", json!({"description": "the envelope", "content": content}))
        }
        SuccessResponse::Run => {
            let content = json!({
                "application/json": {"schema": success},
                "text/event-stream": stream,
                "application/x-ndjson": stream,
            });
            (
                "200",
                json!({"description": "the envelope of the run, or its events", "content": content}),
            )
        }
        SuccessResponse::Stream => {
            let content = json!({"text/event-stream": stream, "application/x-ndjson": stream});
            ("200", json!({"description": "the events", "content": content}))
        }
        SuccessResponse::Json(schema) => {
            let content = json!({"application/json": {"schema": schema}});
            ("200", json!({"description": "the document", "content": content}))
        }
        SuccessResponse::JsonOrStream(schema) => {
            let content = json!({"application/json": {"schema": schema}, "text/event-stream": stream});
            (
                "200",
                json!({"description": "the response, or its events", "content": content}),
            )
        }
        SuccessResponse::Canonical => {
            let content = json!({
                "application/json": {"schema": {"$ref": "#/components/schemas/CanonicalResponse"}},
                "text/event-stream": stream,
                "application/x-ndjson": stream,
            });
            (
                "200",
                json!({"description": "the canonical envelope, or the events", "content": content}),
            )
        }
        SuccessResponse::Forms(content_types) => {
            let content: Map<String, Value> = content_types
                .iter()
                .map(|content_type| (String::from(*content_type), stream.clone()))
                .collect();
            ("200", json!({"description": "the document", "content": content}))
        }
        SuccessResponse::Other(content_type) => {
            let content = json!({*content_type: {"schema": {}}});
            ("200", json!({"description": "the document", "content": content}))
        }
        SuccessResponse::Upgrade => (
            "101",
            json!({"description": "the connection is upgraded to a WebSocket"}),
        ),
    }
}
