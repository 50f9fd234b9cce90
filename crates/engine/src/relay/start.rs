//! How a relayed call begins: it is let in, entered in the accounts, and taken up.

use std::future::poll_fn;
use std::sync::Arc;

use ir::error::Phase;
use ir::{ChatRequest, Error, ErrorKind, Request, RunId};
use serde_json::json;
use tenancy::Tenant;
use tokio::time::Instant;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::lifecycle::OpenRecord;
use super::driver::{RelayDriver, DriverState};
use super::resumable::{ReaderTracker, FrameJournaler};
use super::{RelayedUnary, RelayMachine, RelayConfig, RelayRequest, RelayFailure, RelayResponse, FrameEncoder, ResumableResponse};
use crate::admission::Admission;
use crate::engine::Engine;
use crate::fleet::BackendSelector;
use crate::port::{Backend, LifecycleRecord, JournalError, NewRun};
use crate::run::{ReadFrom, context};

impl Engine {
    /// Passes a conversation on. Resolves once a back-end has said something that can be shown, or with why
    /// nobody could; an answer that is not streamed is whole by then. Dropping the future, or what comes of
    /// it, hangs up.
    pub async fn relay(
        &self,
        tenant: &Tenant,
        call: RelayRequest,
        admission: Admission,
    ) -> Result<RelayResponse, Box<RelayFailure>> {
        let streams = call.request.as_chat().is_some_and(ChatRequest::streams);
        let (upcoming, place) = self.admit(call, admission)?;
        let mut hands = self.start(tenant, upcoming, place).await?;
        let backend = wait_first_part(&mut hands).await?;
        if !streams {
            // Words that somebody waits for are not held back.
            self.crowd.gather().await;
        }
        Ok(RelayResponse::new(hands, backend))
    }

    /// The same for a caller who may come back: frames are journaled before they are seen. Dropping the
    /// reader stops nothing; the answer goes on for the grace period.
    pub async fn relay_resumable(
        &self,
        tenant: &Tenant,
        call: RelayRequest,
        admission: Admission,
        render: Box<dyn FrameEncoder>,
    ) -> Result<ResumableResponse, Box<RelayFailure>> {
        let (upcoming, place) = self.admit(call, admission)?;
        let (run, journal) = (upcoming.run, self.journal().clone());
        let mut hands = self.start(tenant, upcoming, place).await?;
        let backend = wait_first_part(&mut hands).await?;
        // From here on, the end stands behind the frames.
        hands.account = None;
        let attempts = hands.machine.attempts();
        let live = self.open_broadcast(tenant, run);
        let keeping = FrameJournaler {
            hands,
            render,
            journal,
            audience: ReaderTracker::new(live.clone(), self.resume_grace()),
            live,
            stop: self.shutdown_token().clone(),
            offset: 0,
        };
        let frames = self.subscribe(tenant, run, ReadFrom::Start).await;
        self.spawn_tracked(run, keeping.drive());
        let frames = frames.map_err(|error| {
            let message = error.to_string();
            refuse(run, Error::new(ErrorKind::Internal, Phase::MidStream, message))
        })?;
        Ok(ResumableResponse {
            run,
            backend,
            attempts,
            frames,
        })
    }

    /// Asks for something whose answer comes whole. Media that is not let in is refused before anything is
    /// asked, and nothing is booked for it.
    pub async fn call(
        &self,
        tenant: &Tenant,
        mut call: RelayRequest,
        admission: Admission,
    ) -> Result<RelayedUnary, Box<RelayFailure>> {
        let brought = self.media().prepare_request(call.request).await;
        call.request = brought.map_err(|error| {
            let run = RunId::from_parts(self.clock().now_ms(), self.clock().random());
            refuse(run, error)
        })?;
        let began = Instant::now();
        let (upcoming, place) = self.admit(call, admission)?;
        let mut hands = self.start(tenant, upcoming, place).await?;
        poll_fn(|context| hands.poll_first(context)).await;
        match (hands.take_answer(), hands.backend()) {
            (Some(answer), Some(backend)) => Ok(RelayedUnary {
                run: hands.run,
                backend: backend.clone(),
                key: hands.key(),
                attempts: hands.machine.attempts(),
                latency_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
                cost_usd: hands.machine.usage().and_then(|usage| usage.cost_usd.clone()),
                answer: *answer,
            }),
            _ => Err(failure(&hands)),
        }
    }

    fn admit(
        &self,
        call: RelayRequest,
        admission: Admission,
    ) -> Result<(AdmittedCall, TaskTrackerToken), Box<RelayFailure>> {
        let now_ms = self.clock().now_ms();
        let run = call
            .run
            .unwrap_or_else(|| RunId::from_parts(now_ms, self.clock().random()));
        let place = self.reserve_slot().map_err(|running| {
            let message = format!("{running} runs are in progress already");
            refuse(
                run,
                Error::new(ErrorKind::RateLimited, Phase::BeforeSend, message),
            )
        })?;
        call.request.check().map_err(|error| refuse(run, error))?;
        let upcoming = AdmittedCall {
            run,
            now_ms,
            call,
            admission,
        };
        Ok((upcoming, place))
    }

    /// Nobody is asked before the call is in the accounts.
    async fn start(
        &self,
        tenant: &Tenant,
        upcoming: AdmittedCall,
        place: TaskTrackerToken,
    ) -> Result<RelayDriver, Box<RelayFailure>> {
        let run = upcoming.run;
        let refused = |error| refuse(run, journal_unavailable(&error));
        self.journal()
            .buffer(tenant, LifecycleRecord::Started(upcoming.row()))
            .map_err(refused)?;
        let account = OpenRecord::of(self.journal().clone(), tenant, run);
        let hands = self.build_driver(tenant, upcoming, place, account);
        self.crowd.gather().await;
        self.journal().flush(run).map_err(refused)?;
        Ok(hands)
    }

    fn build_driver(
        &self,
        tenant: &Tenant,
        upcoming: AdmittedCall,
        place: TaskTrackerToken,
        account: OpenRecord,
    ) -> RelayDriver {
        let AdmittedCall {
            run, call, admission, ..
        } = upcoming;
        let RelayRequest {
            mut request,
            verbatim,
            trace,
            ..
        } = call;
        if let Some(own) = trace.and_then(|trace| context(run, Some(trace))) {
            let request = Arc::make_mut(&mut request);
            request.meta.trace_id = Some(own.trace_id());
            request.meta.span_id = Some(own.span_id());
        }
        let fleet = self.fleet();
        let mut dispatch = BackendSelector::new(fleet.clone(), request, run.seed(), self.monotonic_ms());
        dispatch.allow_models(admission.models);
        let mut hands = RelayDriver {
            run,
            machine: RelayMachine::new(RelayConfig { run, trace }, dispatch),
            tenant: tenant.clone(),
            fleet,
            verbatim,
            account: Some(account),
            clock: self.clock().clone(),
            traces: self.traces().clone(),
            shadows: self.shadows().clone(),
            began: Instant::now(),
            work: DriverState::default(),
            guards: Some((admission.permit, place)),
        };
        hands.start();
        hands
    }
}

/// A call that is let in and not begun.
struct AdmittedCall {
    run: RunId,
    now_ms: u64,
    call: RelayRequest,
    admission: Admission,
}

impl AdmittedCall {
    fn row(&self) -> NewRun {
        NewRun {
            id: self.run,
            module: String::new(),
            command: command(&self.call.request),
            created_at_ms: self.now_ms,
            client: self.admission.client.clone(),
            once: None,
        }
    }
}

/// What the journal keeps of the question: enough to tell what it was, and nothing that anyone wrote.
fn command(request: &Request) -> String {
    json!({"relayed": request.operation().as_str(), "model": request.model()}).to_string()
}

/// Waits until there is something to show, and says who shows it.
async fn wait_first_part(hands: &mut RelayDriver) -> Result<Backend, Box<RelayFailure>> {
    poll_fn(|context| hands.poll_first(context)).await;
    match hands.backend() {
        // Behind what was shown, an error is a part of its own.
        Some(backend) if hands.has_output() => Ok(backend.clone()),
        _ => Err(failure(hands)),
    }
}

fn failure(hands: &RelayDriver) -> Box<RelayFailure> {
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

fn refuse(run: RunId, error: Error) -> Box<RelayFailure> {
    Box::new(RelayFailure {
        run,
        attempts: 0,
        error,
    })
}

/// What cannot be accounted for is not begun.
fn journal_unavailable(error: &JournalError) -> Error {
    let kind = match error {
        JournalError::Full => ErrorKind::RateLimited,
        _ => ErrorKind::Internal,
    };
    let message = "the call could not be entered in the accounts";
    Error::new(kind, Phase::BeforeSend, message)
}
