//! How a relayed call begins.

use std::future::poll_fn;
use std::sync::Arc;

use ir::error::Phase;
use ir::{Error, ErrorKind, Request, RunId};
use serde_json::json;
use tenancy::Tenant;
use tokio::time::Instant;

use super::hands::{Hands, Work};
use super::{Asked, Machine, Plan, RelayCall, RelayFailure, Relayed};
use crate::admission::{Admission, Permit};
use crate::engine::Engine;
use crate::fleet::Dispatch;
use crate::port::NewRun;
use crate::run::context;

impl Engine {
    /// Passes a conversation on. Resolves once a back-end has said something that can be shown, or with why
    /// nobody could; an answer that is not streamed is whole by then. Dropping the future, or what comes of
    /// it, hangs up.
    pub async fn relay(
        &self,
        tenant: &Tenant,
        call: RelayCall,
        admission: Admission,
    ) -> Result<Relayed, Box<RelayFailure>> {
        let mut hands = self.take_up(tenant, call, admission)?;
        poll_fn(|context| hands.poll_first(context)).await;
        match (hands.machine.failure(), hands.backend()) {
            (None, Some(backend)) => {
                let backend = backend.clone();
                Ok(Relayed::new(hands, backend))
            }
            // Behind what was shown, the error is a part of its own.
            (Some(_), Some(backend)) if hands.has_shown() => {
                let backend = backend.clone();
                Ok(Relayed::new(hands, backend))
            }
            _ => Err(failure(&hands)),
        }
    }

    /// Asks for something whose answer comes whole. Media that is not let in is refused before anything is
    /// asked, and nothing is booked for it.
    pub async fn ask(
        &self,
        tenant: &Tenant,
        mut call: RelayCall,
        admission: Admission,
    ) -> Result<Asked, Box<RelayFailure>> {
        let brought = self.media().bring_request(call.request).await;
        let brought = brought.map_err(|error| {
            Box::new(RelayFailure {
                run: RunId::from_parts(self.clock().now_ms(), self.clock().random()),
                attempts: 0,
                error,
            })
        })?;
        call.request = brought.request.clone();
        let began = Instant::now();
        let mut hands = self.take_up(tenant, call, admission)?;
        poll_fn(|context| hands.poll_first(context)).await;
        match (hands.take_answer(), hands.backend()) {
            (Some(answer), Some(backend)) => Ok(Asked {
                run: hands.run,
                backend: backend.clone(),
                key: hands.key(),
                attempts: hands.machine.attempts(),
                latency_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
                answer: *answer,
            }),
            _ => Err(failure(&hands)),
        }
    }

    fn take_up(
        &self,
        tenant: &Tenant,
        call: RelayCall,
        admission: Admission,
    ) -> Result<Hands, Box<RelayFailure>> {
        let clock = self.clock().clone();
        let now_ms = clock.now_ms();
        let run = RunId::from_parts(now_ms, clock.random());
        let refuse = |error| {
            Box::new(RelayFailure {
                run,
                attempts: 0,
                error,
            })
        };
        let place = self.take_place().map_err(|running| {
            let message = format!("{running} runs are in progress already");
            refuse(Error::new(ErrorKind::RateLimited, Phase::BeforeSend, message))
        })?;
        call.request.check().map_err(refuse)?;
        let RelayCall {
            mut request,
            verbatim,
            trace,
        } = call;
        if let Some(own) = trace.and_then(|trace| context(run, Some(trace))) {
            let request = Arc::make_mut(&mut request);
            request.meta.trace_id = Some(own.trace_id());
            request.meta.span_id = Some(own.span_id());
        }
        let new = NewRun {
            id: run,
            module: String::new(),
            command: command(&request),
            created_at_ms: now_ms,
            client: admission.client,
            once: None,
        };
        let fleet = self.fleet();
        let mut dispatch = Dispatch::new(fleet.clone(), request, run.seed(), self.fleet_ms());
        dispatch.allow_models(admission.models);
        let mut hands = Hands {
            run,
            machine: Machine::new(Plan { run, trace }, dispatch),
            tenant: tenant.clone(),
            fleet,
            verbatim,
            account: self.book().enter(tenant, new),
            clock,
            traces: self.traces().clone(),
            shadows: self.shadows().clone(),
            began: Instant::now(),
            work: Work::default(),
            permits: admission.permit.into_iter().chain([Permit::new(place)]).collect(),
        };
        hands.start();
        Ok(hands)
    }
}

/// What the journal keeps of the question: enough to tell what it was, and nothing that anyone wrote.
fn command(request: &Request) -> String {
    json!({"relayed": request.operation().as_str(), "model": request.model()}).to_string()
}

fn failure(hands: &Hands) -> Box<RelayFailure> {
    let error = hands.machine.failure().cloned().unwrap_or_else(|| {
        let message = "the back-end gave no answer";
        Error::new(ErrorKind::InvalidResponse, Phase::MidStream, message)
    });
    Box::new(RelayFailure {
        run: hands.run,
        attempts: hands.machine.attempts(),
        error,
    })
}
