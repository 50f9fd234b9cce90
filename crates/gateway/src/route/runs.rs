//! Runs as resources: how one stands, and its events from any place on.

use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use engine::From;
use engine::port::RunRow;
use engine::run::Place;
use ir::RunId;
use module::Code;
use module::envelope::ErrorBody;
use serde_json::json;

use crate::limits;
use crate::negotiate::Signals;
use crate::reply::{self, Refusal};
use crate::state::Gateway;
use crate::streaming;

pub(super) async fn show(
    State(gateway): State<Gateway>,
    Path(session_id): Path<String>,
) -> Result<Response, Refusal> {
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
pub(super) async fn cancel(
    State(gateway): State<Gateway>,
    Path(session_id): Path<String>,
) -> Result<Response, Refusal> {
    let row = find(&gateway, &session_id).await?;
    gateway.engine.cancel(&gateway.tenant, row.id).await?;
    let data = json!({"session_id": row.id, "module": row.module});
    Ok(reply::resource("the run was asked to end", data))
}

pub(super) async fn events(
    State(gateway): State<Gateway>,
    Path(session_id): Path<String>,
    headers: HeaderMap,
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
    let heartbeat = module.map_or(limits::HEARTBEAT, |module| {
        Duration::from_millis(module.manifest.response.heartbeat_interval_ms.max(1))
    });
    let subscription = gateway.engine.subscribe(&gateway.tenant, row.id, from).await?;
    let framing = Signals::from_headers(&headers).framing;
    Ok(streaming::response(subscription, framing, heartbeat))
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
