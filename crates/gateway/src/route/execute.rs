//! Module execution: an envelope, a stream, or a resumed stream.

use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use engine::RunMode;
use ir::TraceContext;
use module::Code;
use serde::Deserialize;
use tenancy::Scope;

use crate::call::{Begun, Call};
use crate::endpoint::{Endpoint, any_of_type, execute_body, one_of, text};
use crate::extract::{PathName, Query};
use crate::headers::WARNING_HEADER;
use crate::idempotency::{IdempotencyHeaders, REPLAYED_HEADER};
use crate::negotiate::{ModeSignals, RequestedMode, parse_mode};
use crate::request::{ExecuteBody, RecoveryRequest, parse_json, read_call};
use crate::response::{self, ApiError};
use crate::run_stream;
use crate::state::Gateway;
use crate::stream_limit::ClientStreams;
use crate::streaming::OpenStream;
use crate::trace;

/// Error codes of a run, before and after its start.
const RUN_CODES: &[Code] = &[
    Code::E1000,
    Code::E1001,
    Code::E1002,
    Code::E1003,
    Code::E1004,
    Code::E1005,
    Code::E1010,
    Code::E1012,
    Code::E2002,
    Code::E2003,
    Code::E2010,
    Code::E3001,
    Code::E4001,
    Code::E4006,
    Code::E4010,
    Code::E4011,
    Code::E4013,
    Code::E4014,
    Code::E4016,
];

pub(super) fn operations() -> Vec<Endpoint> {
    let execute = Endpoint::post("/v1/modules/{name}/execute", "execute_module", execute)
        .summary("Runs a module; returns the envelope or a stream of events.")
        .path("name", "The module's name.")
        .query(
            "response_mode",
            "The response mode, if neither header nor body sets it.",
            one_of(&["sync", "streaming"]),
        )
        .header(
            "X-Cognitive-Response-Mode",
            "The response mode; takes precedence over all other settings.",
            one_of(&["sync", "streaming"]),
        )
        .request_body(execute_body());
    vec![run_endpoint(execute)]
}

/// Headers and errors that all execute endpoints share.
pub(super) fn run_endpoint(operation: Endpoint) -> Endpoint {
    operation
        .header(
            "X-Cognitive-Recovery-Session",
            "The session of an interrupted stream.",
            text(),
        )
        .header(
            "X-Cognitive-Recovery-Seq",
            "The number of the last received chunk.",
            any_of_type("integer", "0 means none."),
        )
        .header(
            "Idempotency-Key",
            "A key for this request: repeated within a day, it returns the response of the same run.",
            text(),
        )
        .header(
            "X-Cogn-Resumable",
            "1 keeps a complete response for a client that loses the connection.",
            one_of(&["0", "1"]),
        )
        .returns_run()
        .error_codes(RUN_CODES)
        .error_code_as(StatusCode::CONFLICT, Code::E1001)
}

#[derive(Debug, Deserialize)]
struct ExecuteQuery {
    response_mode: Option<String>,
}

async fn execute(
    gateway: Gateway,
    PathName(name): PathName,
    Query(query): Query<ExecuteQuery>,
    request: Request,
) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let headers = parts.headers;
    let client = ClientStreams::of(&parts.extensions)?;
    client.caller.require(Scope::Execute)?;
    let module = super::modules::find(&gateway, &client.caller, &name)?;
    let bytes = read_call(&gateway, &client, &headers, body).await?;
    let mut body = ExecuteBody::parse(parse_json(&bytes)?)?;
    drop(bytes);
    if body.recovery.is_none() {
        body.recovery = RecoveryRequest::from_headers(&headers)?;
    }
    let trace = trace::of(&headers);
    body.options.trace = trace;
    let mut signals = ModeSignals::from_headers(&headers)?;
    signals.query = query.response_mode.as_deref().map(parse_mode).transpose()?;
    let call = Call {
        client,
        module,
        body,
        signals,
        repeat: IdempotencyHeaders::from_headers(&headers)?,
    };
    let begun = call.begin(&gateway).await?;
    answer(&gateway, begun, trace).await
}

/// The response of a started run.
pub(super) async fn answer(
    gateway: &Gateway,
    begun: Begun,
    trace: Option<TraceContext>,
) -> Result<Response, ApiError> {
    let (run, downgrade, replayed) = (begun.subscription.run(), begun.downgrade, begun.replayed);
    let mut response = match begun.mode {
        RunMode::Stream => {
            let open = OpenStream::new(gateway, begun.stream_permit);
            run_stream::response(begun.subscription, begun.framing, begun.heartbeat, open)
        }
        RunMode::Sync => {
            let last = begun.subscription.terminal_event().await?;
            response::run(run, &last)
        }
    };
    if let Some(downgrade) = downgrade
        && let Ok(value) = HeaderValue::from_str(&downgrade.header())
    {
        response.headers_mut().insert(WARNING_HEADER, value);
    }
    if replayed {
        let yes = HeaderValue::from_static("true");
        response.headers_mut().insert(REPLAYED_HEADER, yes);
    }
    Ok(trace::write_run_header(response, trace, run))
}

/// Forces the mode that the path implies.
pub(super) fn force_mode(signals: &mut ModeSignals, wanted: RequestedMode) {
    signals.header = Some(wanted);
}
