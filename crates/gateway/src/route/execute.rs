//! Running a module: a whole answer, a stream, or the rest of a stream that broke off.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use engine::run::{Warning, envelope};
use engine::{Execute, From, Mode, Subscription};
use module::envelope::ErrorBody;
use module::{Code, Module};
use serde::Deserialize;

use crate::negotiate::{Downgrade, Negotiated, Signals, wanted};
use crate::reply::{self, Refusal};
use crate::request::{ExecuteBody, RecoveryRequest};
use crate::state::Gateway;
use crate::streaming;

#[derive(Debug, Deserialize)]
pub(super) struct ExecuteQuery {
    response_mode: Option<String>,
}

pub(super) async fn execute(
    State(gateway): State<Gateway>,
    Path(name): Path<String>,
    Query(query): Query<ExecuteQuery>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refusal> {
    let module = super::modules::find(&gateway, &name)?;
    let body = ExecuteBody::read(body).await?;
    let mut signals = Signals::from_headers(&headers);
    signals.body = body.options.response_mode;
    signals.query = query.response_mode.as_deref().and_then(wanted);
    let strict = body.options.strict;
    let negotiated = signals.negotiate(module.manifest.response.mode, strict)?;

    let recovery = body
        .recovery
        .clone()
        .or_else(|| RecoveryRequest::from_headers(&headers));
    let mut warnings: Vec<Warning> = negotiated.warning.map(Downgrade::warning).into_iter().collect();
    if let Some(recovery) = recovery {
        match resume(&gateway, &module, &recovery, strict).await? {
            Some(subscription) => return answer(subscription, &negotiated, &signals, &module).await,
            None if strict => {
                let message = format!("there is no session {} to resume", recovery.session_id);
                return Err(Refusal::new(ErrorBody::new(Code::E4013, message)));
            }
            None => {
                let message = format!("session {} is gone; a new one was started", recovery.session_id);
                warnings.push(Warning::new(Code::W4013, message));
            }
        }
    }
    let tenant = &gateway.tenant;
    let command = Execute {
        module: module.clone(),
        options: body.options.run_options(),
        input: body.input,
        mode: negotiated.mode,
        warnings,
    };
    let run = gateway.engine.start(tenant, command).await?;
    let subscription = gateway.engine.subscribe(tenant, run, From::Start).await?;
    answer(subscription, &negotiated, &signals, &module).await
}

/// The rest of a run, if there is such a run of this module.
async fn resume(
    gateway: &Gateway,
    module: &Arc<Module>,
    recovery: &RecoveryRequest,
    strict: bool,
) -> Result<Option<Subscription>, Refusal> {
    let tenant = &gateway.tenant;
    let Some(run) = recovery.run() else {
        return Ok(None);
    };
    match gateway.engine.find(tenant, run).await? {
        Some(row) if row.module == module.name() => {}
        _ => return Ok(None),
    }
    let from = From::After(recovery.place(strict));
    Ok(Some(gateway.engine.subscribe(tenant, run, from).await?))
}

async fn answer(
    subscription: Subscription,
    negotiated: &Negotiated,
    signals: &Signals,
    module: &Module,
) -> Result<Response, Refusal> {
    let mut response = match negotiated.mode {
        Mode::Stream => {
            let heartbeat = Duration::from_millis(module.manifest.response.heartbeat_interval_ms.max(1));
            streaming::response(subscription, signals.framing, heartbeat)
        }
        Mode::Sync => {
            let run = subscription.run();
            let last = subscription.last().await?;
            reply::run(run, envelope(&last))
        }
    };
    if let Some(downgrade) = negotiated.warning
        && let Ok(value) = HeaderValue::from_str(&downgrade.header())
    {
        response.headers_mut().insert("x-cognitive-warning", value);
    }
    Ok(response)
}
