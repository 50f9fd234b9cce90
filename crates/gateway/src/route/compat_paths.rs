//! `/run` and `/run/stream`: the paths of other runtimes of these modules. The body names the module;
//! otherwise equal to `/v1/modules/{name}/execute`.

use axum::body::Body;
use axum::http::{Extensions, HeaderMap};
use axum::response::Response;
use module::Code;
use module::envelope::ErrorBody;
use module::input::free_text;
use serde::Deserialize;
use serde_json::{Value, json};
use tenancy::Scope;

use super::execute::{answer, force_mode, run_endpoint};
use crate::call::Call;
use crate::endpoint::Endpoint;
use crate::idempotency::IdempotencyHeaders;
use crate::negotiate::{ModeSignals, RequestedMode};
use crate::request::{self, ExecuteBody, RecoveryRequest, RequestOptions};
use crate::response::ApiError;
use crate::state::Gateway;
use crate::stream_limit::ClientStreams;
use crate::trace;

pub(super) fn operations() -> Vec<Endpoint> {
    let whole = Endpoint::post("/run", "run", whole)
        .summary("Runs the module that the body names; returns the envelope.")
        .request_body(body_schema());
    let stream = Endpoint::post("/run/stream", "run_stream", stream)
        .summary("Runs the module that the body names; returns a stream of events.")
        .request_body(body_schema());
    vec![run_endpoint(whole), run_endpoint(stream)]
}

fn body_schema() -> Value {
    json!({
        "type": "object",
        "required": ["module"],
        "properties": {
            "module": {"type": "string"},
            "input": {"description": "The module's input."},
            "args": {"type": "string", "description": "Free text instead of an input."},
            "_options": {"$ref": "#/components/schemas/Options"},
            "_recovery": {"$ref": "#/components/schemas/Recovery"}
        },
        "additionalProperties": false
    })
}

/// Fields for back-ends and models are refused instead of ignored: the server routes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RunBody {
    module: String,
    input: Option<Value>,
    args: Option<String>,
    #[serde(rename = "_options")]
    options: Option<Value>,
    #[serde(rename = "_recovery")]
    recovery: Option<RecoveryRequest>,
}

async fn whole(
    gateway: Gateway,
    headers: HeaderMap,
    extensions: Extensions,
    body: Body,
) -> Result<Response, ApiError> {
    run(&gateway, RequestedMode::Sync, &headers, &extensions, body).await
}

async fn stream(
    gateway: Gateway,
    headers: HeaderMap,
    extensions: Extensions,
    body: Body,
) -> Result<Response, ApiError> {
    run(&gateway, RequestedMode::Streaming, &headers, &extensions, body).await
}

async fn run(
    gateway: &Gateway,
    wanted: RequestedMode,
    headers: &HeaderMap,
    extensions: &Extensions,
    body: Body,
) -> Result<Response, ApiError> {
    let client = ClientStreams::of(extensions)?;
    client.caller.require(Scope::Execute)?;
    let bytes = request::read_call(gateway, &client, headers, body).await?;
    let body: RunBody = serde_json::from_value(request::parse_json(&bytes)?)
        .map_err(|error| ApiError::new(ErrorBody::new(Code::E1001, format!("the body: {error}"))))?;
    let module = super::modules::find(gateway, &client.caller, &body.module)?;
    let input = match (body.input, body.args) {
        (Some(input), None) => input,
        (None, Some(args)) => Value::Object(free_text(args)),
        (None, None) => json!({}),
        (Some(_), Some(_)) => {
            let error = ErrorBody::new(Code::E1001, "`input` and `args` exclude each other");
            return Err(ApiError::new(error));
        }
    };
    let recovery = match body.recovery {
        Some(recovery) => Some(recovery),
        None => RecoveryRequest::from_headers(headers)?,
    };
    let trace = trace::of(headers);
    let mut signals = ModeSignals::from_headers(headers)?;
    force_mode(&mut signals, wanted);
    let call = Call {
        client,
        module,
        body: ExecuteBody {
            input,
            options: RequestOptions {
                trace,
                ..RequestOptions::parse(body.options)?
            },
            recovery,
        },
        signals,
        repeat: IdempotencyHeaders::from_headers(headers)?,
    };
    let begun = call.begin(gateway).await?;
    answer(gateway, begun, trace).await
}
