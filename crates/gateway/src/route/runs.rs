//! Runs as resources: how one stands, and its events from any place on.

use axum::extract::State;
use axum::http::{Extensions, HeaderMap};
use axum::response::Response;
use engine::From;
use engine::port::RunRow;
use engine::run::Place;
use ir::RunId;
use module::Code;
use module::envelope::ErrorBody;
use serde_json::json;

use crate::call;
use crate::extract::PathName;
use crate::limits;
use crate::negotiate::Signals;
use crate::operation::{Operation, any_of_type, object, one_of, text};
use crate::reply::{self, Refusal};
use crate::seats::Client;
use crate::state::Gateway;
use crate::streaming;

pub(super) fn operations() -> Vec<Operation> {
    let at = "The id that the run's first event names.";
    let row = object(&[
        ("session_id", text()),
        ("module", text()),
        ("state", one_of(&["running", "done", "failed"])),
        ("code", json!({"type": ["string", "null"]})),
        (
            "created_at_ms",
            any_of_type("integer", "Milliseconds since 1970."),
        ),
        ("finished_at_ms", json!({"type": ["integer", "null"]})),
    ]);
    vec![
        Operation::get("/v1/runs/{session_id}", "show_run", show)
            .says("How a run stands.")
            .path("session_id", at)
            .gives(row)
            .fails(&[Code::E4009]),
        Operation::get("/v1/runs/{session_id}/events", "run_events", events)
            .says("The events of a run, from its start or from where a client was.")
            .path("session_id", at)
            .header(
                "Last-Event-ID",
                "The number of the last chunk that was received.",
                text(),
            )
            .gives_stream()
            .fails(&[Code::E1001, Code::E1004, Code::E4009]),
        Operation::post("/v1/runs/{session_id}/cancel", "cancel_run", cancel)
            .says("Asks a run to end; one that has ended is not changed.")
            .path("session_id", at)
            .gives(object(&[("session_id", text()), ("module", text())]))
            .fails(&[Code::E4009]),
    ]
}

async fn show(State(gateway): State<Gateway>, PathName(session_id): PathName) -> Result<Response, Refusal> {
    let row = find(&gateway, &session_id).await?;
    let data = json!({
        "session_id": row.id,
        "module": row.module,
        "state": row.state.as_str(),
        "code": row.finished.as_ref().and_then(|finish| finish.code.as_deref()),
        "created_at_ms": row.created_at_ms,
        "finished_at_ms": row.finished.as_ref().map(|finish| finish.at_ms),
    });
    Ok(reply::resource(
        &format!("the run is {}", row.state.as_str()),
        data,
    ))
}

/// Asks the run to end. Its last event says that it did; one that has ended already is not changed.
async fn cancel(State(gateway): State<Gateway>, PathName(session_id): PathName) -> Result<Response, Refusal> {
    let row = find(&gateway, &session_id).await?;
    gateway.engine.cancel(&gateway.tenant, row.id).await?;
    let data = json!({"session_id": row.id, "module": row.module});
    Ok(reply::resource("the run was asked to end", data))
}

async fn events(
    State(gateway): State<Gateway>,
    PathName(session_id): PathName,
    headers: HeaderMap,
    extensions: Extensions,
) -> Result<Response, Refusal> {
    let row = find(&gateway, &session_id).await?;
    let from = match last_event_id(&headers)? {
        None => From::Start,
        Some(seq) => From::After(Place {
            seq,
            checkpoint: None,
            strict: false,
        }),
    };
    let module = gateway.engine.modules().get(&row.module).cloned();
    let heartbeat = module.map_or(limits::HEARTBEAT, |module| call::heartbeat(&module));
    let client = Client::of(&extensions);
    let seat = gateway
        .seats
        .take(&client, gateway.settings().streams_per_client_max)?;
    let subscription = gateway.engine.subscribe(&gateway.tenant, row.id, from).await?;
    let framing = Signals::from_headers(&headers)?.framing;
    Ok(streaming::response(
        &gateway,
        subscription,
        framing,
        heartbeat,
        Some(seat),
    ))
}

fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, Refusal> {
    let Some(value) = headers.get("last-event-id") else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or_default().trim();
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| {
        Refusal::new(ErrorBody::new(
            Code::E1001,
            "Last-Event-ID is not a sequence number",
        ))
    })
}

async fn find(gateway: &Gateway, session_id: &str) -> Result<RunRow, Refusal> {
    let unknown = || Refusal::new(ErrorBody::new(Code::E4009, format!("no run {session_id}")));
    let run: RunId = session_id.parse().map_err(|_| unknown())?;
    let row = gateway.engine.find(&gateway.tenant, run).await?;
    row.ok_or_else(unknown)
}
