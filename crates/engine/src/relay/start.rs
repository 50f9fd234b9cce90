//! Start of a relayed call: admission, journal record, driver. The call is journaled before any upstream
//! request is sent.

use std::future::poll_fn;
use std::sync::Arc;

use ir::error::Phase;
use ir::{Error, ErrorKind, Request, RunId};
use serde_json::json;
use tenancy::Tenant;
use tokio::time::Instant;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::driver::{DriverState, RelayDriver};
use super::resumable::{FrameJournaler, ReaderTracker};
use super::{
    FrameEncoder, RelayConfig, RelayFailure, RelayMachine, RelayRequest, RelayResponse, RelayedUnary,
    ResumableResponse,
};
use crate::admission::Admission;
use crate::engine::Engine;
use crate::fleet::BackendSelector;
use crate::port::{Account, Backend, Commit, JournalError, NewRun, RunKind};
use crate::run::{ReadFrom, context};

impl Engine {
    /// Relays a chat request. Resolves when a back-end has produced output, or with the error if none could
    /// answer; a response that is not streamed is complete by then. Dropping the future or the returned
    /// response cancels the upstream calls.
    pub async fn relay(
        &self,
        tenant: &Tenant,
        call: RelayRequest,
        admission: Admission,
    ) -> Result<RelayResponse, Box<RelayFailure>> {
        self.check_urls(&call).await?;
        let (upcoming, place) = self.admit(call, admission)?;
        let mut hands = self.start_relay(tenant, upcoming, place).await?;
        let backend = wait_first_part(&mut hands).await?;
        Ok(RelayResponse::new(hands, backend))
    }

    /// Like [`Self::relay`], for a caller that may reconnect: frames are journaled before they are published.
    /// Dropping the reader cancels nothing; the response continues for the grace period.
    pub async fn relay_resumable(
        &self,
        tenant: &Tenant,
        call: RelayRequest,
        admission: Admission,
        render: Box<dyn FrameEncoder>,
    ) -> Result<ResumableResponse, Box<RelayFailure>> {
        self.check_urls(&call).await?;
        let (upcoming, place) = self.admit(call, admission)?;
        let (run, journal) = (upcoming.run, self.journal().clone());
        let mut hands = self.start_resumable(tenant, upcoming, place).await?;
        let backend = wait_first_part(&mut hands).await?;
        // From here on, the frame journaler writes the run's end, after the frames.
        hands.account = None;
        let attempts = hands.machine.attempts();
        let live = self.runs.open_broadcast(tenant, run, 0);
        let keeping = FrameJournaler {
            hands,
            render,
            journal,
            audience: ReaderTracker::new(live.clone(), self.resume_grace()),
            live,
            stop: self.runs.stop.clone(),
            offset: 0,
        };
        let frames = self.subscribe(tenant, run, ReadFrom::Start).await;
        self.runs.spawn_tracked(run, keeping.drive());
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

    /// Performs a unary operation. Media that is refused fails the call before any request is sent and before
    /// anything is journaled.
    pub async fn call(
        &self,
        tenant: &Tenant,
        mut call: RelayRequest,
        admission: Admission,
    ) -> Result<RelayedUnary, Box<RelayFailure>> {
        let brought = self.media().prepare_request(call.request).await;
        call.request = brought.map_err(|error| self.refuse_unstarted(error))?;
        let began = Instant::now();
        let (upcoming, place) = self.admit(call, admission)?;
        let mut hands = self.start_relay(tenant, upcoming, place).await?;
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

    async fn check_urls(&self, call: &RelayRequest) -> Result<(), Box<RelayFailure>> {
        let checked = self.media().check_urls(&call.request).await;
        checked.map_err(|error| self.refuse_unstarted(error))
    }

    fn refuse_unstarted(&self, error: Error) -> Box<RelayFailure> {
        let run = RunId::from_parts(self.clock().now_ms(), self.clock().random());
        refuse(run, error)
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

    /// The start of the call is on record before any upstream request is sent.
    async fn start_relay(
        &self,
        tenant: &Tenant,
        upcoming: AdmittedCall,
        place: TaskTrackerToken,
    ) -> Result<RelayDriver, Box<RelayFailure>> {
        let run = upcoming.run;
        let opened = self.journal().open_account(tenant, &upcoming.row());
        let (account, started) = opened.map_err(|error| refuse(run, journal_unavailable(&error)))?;
        self.start_driver(tenant, upcoming, place, account, started).await
    }

    /// Like [`Self::start_relay`], for a call whose frames are journaled: it is a row from its start.
    async fn start_resumable(
        &self,
        tenant: &Tenant,
        upcoming: AdmittedCall,
        place: TaskTrackerToken,
    ) -> Result<RelayDriver, Box<RelayFailure>> {
        let (journal, run) = (self.journal().clone(), upcoming.run);
        let created = journal.create(tenant, &upcoming.row());
        let owner = tenant.clone();
        let account = Account::new(move |end| {
            // Queued by the call. A run that stays open is closed by the next server.
            drop(journal.finish(&owner, run, 0, &[], &end));
        });
        self.start_driver(tenant, upcoming, place, account, created).await
    }

    /// A caller that disconnects while it waits for `started` drops the driver, which ends the call.
    async fn start_driver(
        &self,
        tenant: &Tenant,
        upcoming: AdmittedCall,
        place: TaskTrackerToken,
        account: Account,
        started: Commit,
    ) -> Result<RelayDriver, Box<RelayFailure>> {
        let run = upcoming.run;
        let hands = self.build_driver(tenant, upcoming, place, account);
        started
            .await
            .map_err(|error| refuse(run, journal_unavailable(&error)))?;
        Ok(hands)
    }

    fn build_driver(
        &self,
        tenant: &Tenant,
        upcoming: AdmittedCall,
        place: TaskTrackerToken,
        account: Account,
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
        let fleet = self.fleet().clone();
        let mut dispatch = BackendSelector::new(fleet.clone(), request, run.seed(), self.runs.monotonic_ms());
        dispatch.allow_models(admission.models);
        let mut hands = RelayDriver {
            run,
            machine: RelayMachine::new(RelayConfig { run, trace }, dispatch),
            tenant: tenant.clone(),
            fleet,
            verbatim,
            account: Some(account),
            clock: self.clock().clone(),
            traces: self.runs.traces.clone(),
            shadows: self.runs.shadows.clone(),
            began: Instant::now(),
            work: DriverState::default(),
            guards: Some((admission.permit, place)),
        };
        hands.start();
        hands
    }
}

/// An admitted call that has not started.
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
            kind: RunKind::Relay,
            command: command(&self.call.request),
            created_at_ms: self.now_ms,
            client: self.admission.client.clone(),
            once: None,
        }
    }
}

/// The journaled summary of the request: operation and model, no content from the caller.
fn command(request: &Request) -> String {
    json!({"relayed": request.operation().as_str(), "model": request.model()}).to_string()
}

/// Waits for the first output and returns the back-end that produced it.
async fn wait_first_part(hands: &mut RelayDriver) -> Result<Backend, Box<RelayFailure>> {
    poll_fn(|context| hands.poll_first(context)).await;
    match hands.backend() {
        // After output, an error is delivered as a part.
        Some(backend) if hands.has_output() => Ok(backend.clone()),
        _ => Err(failure(hands)),
    }
}

fn failure(hands: &RelayDriver) -> Box<RelayFailure> {
    let error = hands.machine.failure().cloned().unwrap_or_else(|| {
        let message = "no answer from the back-end";
        Error::new(ErrorKind::InvalidResponse, Phase::MidStream, message)
    });
    Box::new(RelayFailure {
        run: hands.run,
        attempts: hands.machine.attempts(),
        error,
    })
}

pub(super) fn refuse(run: RunId, error: Error) -> Box<RelayFailure> {
    Box::new(RelayFailure {
        run,
        attempts: 0,
        error,
    })
}

/// A call that cannot be journaled is not started.
pub(super) fn journal_unavailable(error: &JournalError) -> Error {
    let kind = match error {
        JournalError::Full => ErrorKind::RateLimited,
        _ => ErrorKind::Internal,
    };
    let message = "the journal rejected the call";
    Error::new(kind, Phase::BeforeSend, message)
}
