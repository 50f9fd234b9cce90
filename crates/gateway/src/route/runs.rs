//! Runs as resources: list, state and result, and events from any resume point.

use axum::http::{Extensions, HeaderMap};
use axum::response::Response;
use engine::port::{Review, ReviewOutcome, RunFilter, RunKind, RunRecord, RunStatus, RunSummary};
use engine::run::{ResumePoint, envelope};
use engine::{ReadFrom, RunMode};
use ir::RunId;
use module::Code;
use module::envelope::ErrorBody;
use serde::Deserialize;
use serde_json::{Value, json};
use tenancy::{Caller, Scope};

use crate::auth::{AuthenticatedCaller, TicketScope};
use crate::call;
use crate::endpoint::{Endpoint, any_of_type, object, one_of, text};
use crate::extract::{PathName, Query};
use crate::limits;
use crate::negotiate::ModeSignals;
use crate::response::{self, ApiError};
use crate::resume::{self, ResumeError};
use crate::run_stream;
use crate::state::Gateway;
use crate::stream_limit::ClientStreams;
use crate::streaming::OpenStream;

const AT: &str = "The id from the first event of the run.";

pub(super) fn operations() -> Vec<Endpoint> {
    let states: Vec<&str> = RunStatus::ALL.iter().map(|state| state.as_str()).collect();
    vec![
        Endpoint::get("/v1/runs", "list_runs", list)
            .summary("Lists runs, newest first, with pagination.")
            .query("state", "Only runs in this state.", one_of(&states))
            .query("cursor", "`next` of the previous page.", text())
            .query(
                "limit",
                "Most runs on the page.",
                json!({"type": "integer", "minimum": 1, "maximum": limits::PAGE_RUNS_MAX}),
            )
            .returns(object(&[
                ("runs", json!({"type": "array", "items": summary_schema()})),
                ("next", json!({"type": ["string", "null"]})),
            ]))
            .error_codes(&[Code::E1001, Code::E1004]),
        Endpoint::get("/v1/runs/{session_id}", "show_run", show)
            .summary("Shows a run: its state, its envelope once it has ended, its usage and its review.")
            .path("session_id", AT)
            .returns(row_schema())
            .error_codes(&[Code::E4009]),
        Endpoint::get("/v1/runs/{session_id}/events", "run_events", events)
            .summary("Streams the events of a run, from its start or from a resume point.")
            .path("session_id", AT)
            .header(
                "Last-Event-ID",
                "The number of the last received chunk.",
                text(),
            )
            .query(
                "last_event_id",
                "The same, for clients that cannot send headers. The header takes precedence.",
                text(),
            )
            .query(
                "token",
                "A ticket, for clients that cannot send headers. Valid once, for one minute.",
                text(),
            )
            .returns_stream()
            .error_codes(&[Code::E1001, Code::E1004, Code::E4009]),
        Endpoint::post("/v1/runs/{session_id}/token", "issue_ticket", ticket)
            .summary("Issues a single-use ticket for the events of this run, for clients that cannot send headers.")
            .path("session_id", AT)
            .returns(object(&[
                ("token", text()),
                ("url", text()),
                (
                    "expires_at_ms",
                    any_of_type("integer", "Milliseconds since 1970."),
                ),
            ]))
            .error_codes(&[Code::E4009]),
        Endpoint::post("/v1/runs/{session_id}/cancel", "cancel_run", cancel)
            .summary("Cancels a run; an ended run is not changed.")
            .path("session_id", AT)
            .returns(object(&[("session_id", text()), ("module", text())]))
            .error_codes(&[Code::E4009]),
    ]
}

fn summary_schema() -> Value {
    let states: Vec<&str> = RunStatus::ALL.iter().map(|state| state.as_str()).collect();
    object(&[
        ("session_id", text()),
        ("module", text()),
        ("client", text()),
        ("state", one_of(&states)),
        ("code", json!({"type": ["string", "null"]})),
        (
            "created_at_ms",
            any_of_type("integer", "Milliseconds since 1970."),
        ),
        ("finished_at_ms", json!({"type": ["integer", "null"]})),
        ("review", json!({"type": ["object", "null"]})),
    ])
}

pub(super) fn row_schema() -> Value {
    let mut schema = summary_schema();
    schema["properties"]["result"] = json!({
        "type": ["object", "null"],
        "description": "The envelope, with the data of the reviewer if it was edited."
    });
    schema["properties"]["usage"] = json!({"type": "array", "items": {"type": "object"}});
    schema
}

#[derive(Debug, Deserialize)]
struct ListQuery {
    state: Option<String>,
    cursor: Option<String>,
    limit: Option<usize>,
}

async fn list(
    gateway: Gateway,
    AuthenticatedCaller(caller): AuthenticatedCaller,
    Query(query): Query<ListQuery>,
) -> Result<Response, ApiError> {
    caller.require(Scope::Read)?;
    let state = match query.state.as_deref() {
        None => None,
        Some(text) => Some(RunStatus::find(text).ok_or_else(|| {
            let known: Vec<_> = RunStatus::ALL.iter().map(|state| state.as_str()).collect();
            let error = ErrorBody::new(Code::E1004, format!("unknown run state `{text}`"));
            ApiError::new(error.detail("allowed", known))
        })?),
    };
    let before = match query.cursor.as_deref() {
        None => None,
        Some(text) => Some(
            text.parse()
                .map_err(|_| ApiError::new(ErrorBody::new(Code::E1001, "the cursor is invalid")))?,
        ),
    };
    let limit = query.limit.unwrap_or(limits::PAGE_RUNS);
    if !(1..=limits::PAGE_RUNS_MAX).contains(&limit) {
        let error = ErrorBody::new(Code::E1004, format!("the limit {limit} is out of range"));
        return Err(ApiError::new(error.detail("allowed", limits::PAGE_RUNS_MAX)));
    }
    let filter = RunFilter { state, before, limit };
    let runs = gateway.archive.list(&caller.tenant, &filter).await;
    let runs = runs.map_err(engine::Error::from)?;
    let next = (runs.len() == limit)
        .then(|| runs.last().map(|run| run.id))
        .flatten();
    let explain = format!("{} runs", runs.len());
    let runs: Vec<Value> = runs.iter().map(summary).collect();
    Ok(response::resource(&explain, json!({"runs": runs, "next": next})))
}

async fn show(
    gateway: Gateway,
    AuthenticatedCaller(caller): AuthenticatedCaller,
    PathName(session_id): PathName,
) -> Result<Response, ApiError> {
    caller.require(Scope::Read)?;
    let row = find(&gateway, &caller, &session_id).await?;
    describe(&gateway, &caller, row).await
}

/// State, result and usage of a run.
pub(super) async fn describe(
    gateway: &Gateway,
    caller: &Caller,
    row: RunRecord,
) -> Result<Response, ApiError> {
    let last = gateway.engine().last(&caller.tenant, &row).await?;
    let mut result = last.as_ref().map(envelope);
    let edited = row
        .review
        .as_ref()
        .and_then(|review| review.verdict.as_ref()?.data.as_deref());
    if let (Some(result), Some(data)) = (&mut result, edited) {
        result["data"] = serde_json::from_str(data).unwrap_or_default();
    }
    let spent = gateway.archive.attempt_usage(&caller.tenant, row.id).await;
    let spent = spent.map_err(engine::Error::from)?;
    let row = RunSummary::from(row);
    let mut data = summary(&row);
    data["result"] = result.unwrap_or_default();
    data["usage"] = json!(spent);
    let explain = format!("the run is {}", row.shown().as_str());
    Ok(response::resource(&explain, data))
}

fn summary(row: &RunSummary) -> Value {
    json!({
        "session_id": row.id,
        "module": row.kind.module().unwrap_or_default(),
        "client": row.client,
        "state": row.shown().as_str(),
        "code": row.finished.as_ref().and_then(|finish| finish.code.as_deref()),
        "created_at_ms": row.created_at_ms,
        "finished_at_ms": row.finished.as_ref().map(|finish| finish.at_ms),
        "review": row.review.as_ref().map(review),
    })
}

fn review(review: &Review) -> Value {
    let verdict = review.verdict.as_ref();
    json!({
        "reason": review.reason,
        "decision": verdict.map(|verdict| verdict.decision.as_str()),
        "by": verdict.map(|verdict| &verdict.by),
        "comment": verdict.and_then(|verdict| verdict.comment.as_ref()),
        "edited": verdict.is_some_and(|verdict| verdict.decision == ReviewOutcome::Edited),
        "at_ms": verdict.map(|verdict| verdict.at_ms),
    })
}

/// Requests cancellation. The terminal event of the run reports it; an ended run is not changed.
async fn cancel(
    gateway: Gateway,
    AuthenticatedCaller(caller): AuthenticatedCaller,
    PathName(session_id): PathName,
) -> Result<Response, ApiError> {
    caller.require(Scope::Execute)?;
    let row = find(&gateway, &caller, &session_id).await?;
    gateway.engine().cancel(&caller.tenant, row.id).await?;
    let data = json!({"session_id": row.id, "module": row.kind.module().unwrap_or_default()});
    Ok(response::resource("cancellation requested", data))
}

async fn ticket(
    gateway: Gateway,
    AuthenticatedCaller(caller): AuthenticatedCaller,
    PathName(session_id): PathName,
) -> Result<Response, ApiError> {
    caller.require(Scope::Read)?;
    let row = find(&gateway, &caller, &session_id).await?;
    if row.kind == RunKind::Relay {
        return Err(relayed_call(&session_id));
    }
    let now_ms = gateway.engine().clock().now_ms();
    let issued = gateway
        .tickets
        .issue(&caller, TicketScope::Events(row.id), now_ms)?;
    let data = json!({
        "url": format!("/v1/runs/{}/events?token={}", row.id, issued.token),
        "token": issued.token,
        "expires_at_ms": issued.expires_at_ms,
    });
    Ok(response::resource("the ticket is valid once", data))
}

#[derive(Debug, Deserialize)]
struct EventsQuery {
    last_event_id: Option<String>,
}

async fn events(
    gateway: Gateway,
    PathName(session_id): PathName,
    Query(query): Query<EventsQuery>,
    headers: HeaderMap,
    extensions: Extensions,
) -> Result<Response, ApiError> {
    let client = ClientStreams::of(&extensions)?;
    client.caller.require(Scope::Read)?;
    let from = match last_event_id(&headers, query.last_event_id.as_deref())? {
        None => ReadFrom::Start,
        Some(seq) => ReadFrom::AfterChunk(ResumePoint {
            seq,
            checkpoint: None,
            strict: false,
        }),
    };
    let unknown = || ApiError::new(ErrorBody::new(Code::E4009, format!("no run {session_id}")));
    let run = session_id.parse().map_err(|_| unknown())?;
    let resumed = match resume::open(&gateway, &client, run, None, from, RunMode::Stream).await {
        Err(ResumeError::OtherKind) => return Err(relayed_call(&session_id)),
        resumed => resumed.map_err(|error| error.or(unknown()))?,
    };
    let name = resumed.record.kind.module();
    let module = name.and_then(|name| gateway.engine().modules().get(name));
    let heartbeat = module.map_or(limits::HEARTBEAT, |module| call::heartbeat(module));
    let framing = ModeSignals::from_headers(&headers)?.framing;
    let open = OpenStream::new(&gateway, resumed.permit);
    Ok(run_stream::response(
        resumed.subscription,
        framing,
        heartbeat,
        open,
    ))
}

/// A browser that reconnects sends the header together with the original URL; the header is newer.
fn last_event_id(headers: &HeaderMap, query: Option<&str>) -> Result<Option<u64>, ApiError> {
    let header = headers.get("last-event-id");
    let header = header.map(|value| value.to_str().unwrap_or_default());
    let text = header.or(query).unwrap_or_default().trim();
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| {
        ApiError::new(ErrorBody::new(
            Code::E1001,
            "Last-Event-ID is not a sequence number",
        ))
    })
}

/// The frames of a relayed call are in a vendor dialect, which only its client can resume through the vendor
/// API.
fn relayed_call(session_id: &str) -> ApiError {
    let message = format!("run {session_id} is a relayed call, without module events");
    let hint = "resume it at its own endpoint: send the same request with the header Last-Event-ID";
    ApiError::new(ErrorBody::new(Code::E4009, message).suggest(hint))
}

/// Finds a run of the tenant of the caller; runs of other tenants are not visible.
pub(super) async fn find(
    gateway: &Gateway,
    caller: &Caller,
    session_id: &str,
) -> Result<RunRecord, ApiError> {
    let unknown = || ApiError::new(ErrorBody::new(Code::E4009, format!("no run {session_id}")));
    let run: RunId = session_id.parse().map_err(|_| unknown())?;
    let row = gateway.engine().find(&caller.tenant, run).await?;
    row.ok_or_else(unknown)
}
