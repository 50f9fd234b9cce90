//! Endpoints of the server. An endpoint is a handler with its description, so that the router and the OpenAPI
//! document are built from one list and cannot differ.

mod html;
mod openapi;
mod schema;
#[cfg(test)]
mod tests;

use axum::Router;
use axum::handler::Handler;
use axum::http::StatusCode;
use axum::routing::{MethodRouter, get, post};
use module::Code;
use serde_json::Value;

use crate::inference::Vendor;

pub(crate) use html::page;
pub(crate) use openapi::document;
pub(crate) use schema::{any_of_type, execute_body, object, one_of, text};

#[derive(Debug)]
pub(crate) struct Endpoint {
    method: Method,
    path: &'static str,
    /// Method name in generated clients.
    id: &'static str,
    summary: &'static str,
    parameters: Vec<Parameter>,
    body: Option<Value>,
    body_type: &'static str,
    answer: SuccessResponse,
    codes: Vec<Code>,
    /// Codes with another status than their default.
    exceptions: Vec<(u16, Code)>,
    /// The schema of its errors, if they are not envelopes.
    failure: Option<&'static str>,
    handler: MethodRouter,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    Get,
    Post,
}

#[derive(Debug)]
pub(crate) struct Parameter {
    name: &'static str,
    place: ParameterIn,
    about: &'static str,
    schema: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ParameterIn {
    Path,
    Query,
    Header,
}

/// The form of a successful response.
#[derive(Debug)]
enum SuccessResponse {
    /// An envelope with data of this schema.
    Resource(Value),
    /// The envelope of a run, or its stream, as negotiated.
    Run,
    /// Always a stream.
    Stream,
    /// A vendor document of this schema.
    Json(Value),
    /// The same, or a vendor stream, as requested in the body.
    JsonOrStream(Value),
    /// A canonical envelope, or the events of a chat.
    Canonical,
    /// Not an envelope, in one of several types.
    Forms(&'static [&'static str]),
    /// Not an envelope.
    Other(&'static str),
    /// The connection is upgraded to a WebSocket.
    Upgrade,
}

impl Endpoint {
    pub(crate) fn get<H, T>(path: &'static str, id: &'static str, handler: H) -> Self
    where
        H: Handler<T, ()>,
        T: 'static,
    {
        Self::new(Method::Get, path, id, get(handler))
    }

    pub(crate) fn post<H, T>(path: &'static str, id: &'static str, handler: H) -> Self
    where
        H: Handler<T, ()>,
        T: 'static,
    {
        Self::new(Method::Post, path, id, post(handler))
    }

    fn new(method: Method, path: &'static str, id: &'static str, handler: MethodRouter) -> Self {
        Self {
            method,
            path,
            id,
            summary: "",
            parameters: Vec::new(),
            body: None,
            body_type: "application/json",
            answer: SuccessResponse::Other("text/plain"),
            codes: Vec::new(),
            exceptions: Vec::new(),
            failure: None,
            handler,
        }
    }

    pub(crate) fn summary(mut self, summary: &'static str) -> Self {
        self.summary = summary;
        self
    }

    /// A path parameter, which must be in the path as `{name}`.
    pub(crate) fn path(self, name: &'static str, about: &'static str) -> Self {
        self.parameter(name, ParameterIn::Path, about, text())
    }

    pub(crate) fn query(self, name: &'static str, about: &'static str, schema: Value) -> Self {
        self.parameter(name, ParameterIn::Query, about, schema)
    }

    pub(crate) fn header(self, name: &'static str, about: &'static str, schema: Value) -> Self {
        self.parameter(name, ParameterIn::Header, about, schema)
    }

    fn parameter(
        mut self,
        name: &'static str,
        place: ParameterIn,
        about: &'static str,
        schema: Value,
    ) -> Self {
        self.parameters.push(Parameter {
            name,
            place,
            about,
            schema,
        });
        self
    }

    /// Accepts a JSON body of this schema.
    pub(crate) fn request_body(mut self, schema: Value) -> Self {
        self.body = Some(schema);
        // Slow bodies time out.
        self.error_code_as(StatusCode::REQUEST_TIMEOUT, Code::E1001)
    }

    /// Accepts a multipart form with files, with fields of this schema.
    pub(crate) fn multipart_body(mut self, schema: Value) -> Self {
        self.body_type = "multipart/form-data";
        self.request_body(schema)
    }

    /// Returns an envelope with data of this schema.
    pub(crate) fn returns(mut self, data: Value) -> Self {
        self.answer = SuccessResponse::Resource(data);
        self
    }

    /// Returns the envelope of a run or its stream.
    pub(crate) fn returns_run(mut self) -> Self {
        self.answer = SuccessResponse::Run;
        self
    }

    pub(crate) fn returns_stream(mut self) -> Self {
        self.answer = SuccessResponse::Stream;
        self
    }

    /// Returns a document of another type than an envelope.
    pub(crate) fn returns_document(mut self, content_type: &'static str) -> Self {
        self.answer = SuccessResponse::Other(content_type);
        self
    }

    /// Returns one of these types, as requested in the body.
    pub(crate) fn returns_one_of(mut self, content_types: &'static [&'static str]) -> Self {
        self.answer = SuccessResponse::Forms(content_types);
        self
    }

    /// Returns a canonical envelope or canonical events.
    pub(crate) fn returns_canonical(mut self) -> Self {
        self.answer = SuccessResponse::Canonical;
        self
    }

    /// Errors are documents of this schema, for all statuses.
    pub(crate) fn error_schema(mut self, schema: &'static str) -> Self {
        self.failure = Some(schema);
        self
    }

    /// Errors are in the format of a vendor.
    pub(crate) fn vendor(self, vendor: Vendor) -> Self {
        self.error_schema(vendor.error_schema())
    }

    /// Returns JSON of this schema that is not an envelope.
    pub(crate) fn returns_json(mut self, schema: Value) -> Self {
        self.answer = SuccessResponse::Json(schema);
        self
    }

    /// Returns JSON of this schema or a stream of events.
    pub(crate) fn returns_json_or_stream(mut self, schema: Value) -> Self {
        self.answer = SuccessResponse::JsonOrStream(schema);
        self
    }

    pub(crate) fn returns_websocket(mut self) -> Self {
        self.answer = SuccessResponse::Upgrade;
        self
    }

    /// A code with another status than its default.
    pub(crate) fn error_code_as(mut self, status: StatusCode, code: Code) -> Self {
        self.exceptions.push((status.as_u16(), code));
        self
    }

    /// Error codes, besides those of all endpoints.
    pub(crate) fn error_codes(mut self, codes: &[Code]) -> Self {
        self.codes.extend_from_slice(codes);
        self
    }
}

/// Router of all endpoints.
pub(crate) fn routes(operations: Vec<Endpoint>) -> Router {
    operations.into_iter().fold(Router::new(), |router, operation| {
        router.route(operation.path, operation.handler)
    })
}
