//! The relayed calls of a server. Start of a call: admission, journal record, driver. The call is journaled before any upstream
//! request is sent.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use ir::error::Phase;
use ir::{Error, ErrorKind, Request, RunId};
use serde_json::json;
use tenancy::Tenant;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::driver::{DriverState, RelayDriver};
use super::resumable::{FrameJournaler, ReaderTracker};
use super::{
    FrameEncoder, RelayConfig, RelayFailure, RelayMachine, RelayRequest, RelayResponse, RelayedUnary,
    ResumableResponse,
};
use crate::admission::Admission;
use crate::config::EngineConfig;
use crate::fleet::{BackendSelector, Fleet};
use crate::port::{Account, Backend, Commit, JournalError, NewRun, RunKind};
use crate::run::{ReadFrom, context};
use crate::runs::Runs;

/// A handle: clones share the calls in progress.
#[derive(Clone, Debug)]
pub(crate) struct Relay {
    runs: Runs,
    /// One token for each call, which runs in the task of its caller.
    calls: TaskTracker,
}

impl Relay {
    pub(crate) fn new(runs: Runs) -> Self {
        Self {
            runs,
            calls: TaskTracker::new(),
        }
    }

    /// The number of calls in progress.
    pub(crate) fn count(&self) -> usize {
        self.calls.len()
    }

    /// Returns when no call is in progress; by then all of them are journaled.
    pub(crate) async fn drained(&self) {
        self.calls.close();
        self.calls.wait().await;
    }

    pub(crate) async fn relay(
        &self,
        config: &EngineConfig,
        tenant: &Tenant,
        call: RelayRequest,
        admission: Admission,
    ) -> Result<RelayResponse, Box<RelayFailure>> {
        self.check_urls(config, &call).await?;
        let (upcoming, place) = self.admit(config, call, admission)?;
        let mut hands = self.start_relay(tenant, upcoming, place).await?;
        let backend = wait_first_part(&mut hands).await?;
        Ok(RelayResponse::new(hands, backend))
    }

    pub(crate) async fn relay_resumable(
        &self,
        config: &EngineConfig,
        tenant: &Tenant,
        call: RelayRequest,
        admission: Admission,
        render: Box<dyn FrameEncoder>,
    ) -> Result<ResumableResponse, Box<RelayFailure>> {
        self.check_urls(config, &call).await?;
        let (upcoming, place) = self.admit(config, call, admission)?;
        let (run, journal) = (upcoming.run, self.runs.journal.clone());
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
            audience: ReaderTracker::new(
                live.clone(),
                Duration::from_millis(config.settings.resume_grace_ms),
            ),
            live,
            stop: self.runs.stop.clone(),
            offset: 0,
        };
        let frames = self.runs.subscribe(tenant, run, ReadFrom::Start).await;
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

    pub(crate) async fn call(
        &self,
        config: &EngineConfig,
        tenant: &Tenant,
        mut call: RelayRequest,
        admission: Admission,
    ) -> Result<RelayedUnary, Box<RelayFailure>> {
        let brought = config.media.prepare_request(call.request).await;
        call.request = brought.map_err(|error| self.refuse_unstarted(error))?;
        let began = Instant::now();
        let (upcoming, place) = self.admit(config, call, admission)?;
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

    async fn check_urls(&self, config: &EngineConfig, call: &RelayRequest) -> Result<(), Box<RelayFailure>> {
        let checked = config.media.check_urls(&call.request).await;
        checked.map_err(|error| self.refuse_unstarted(error))
    }

    fn refuse_unstarted(&self, error: Error) -> Box<RelayFailure> {
        let run = RunId::from_parts(self.runs.clock.now_ms(), self.runs.clock.random());
        refuse(run, error)
    }

    fn admit(
        &self,
        config: &EngineConfig,
        call: RelayRequest,
        admission: Admission,
    ) -> Result<(AdmittedCall, TaskTrackerToken), Box<RelayFailure>> {
        let now_ms = self.runs.clock.now_ms();
        let run = call
            .run
            .unwrap_or_else(|| RunId::from_parts(now_ms, self.runs.clock.random()));
        let running = self.runs.count() + self.count();
        if running >= config.settings.runs_max {
            let message = format!("{running} runs are in progress already");
            let error = Error::new(ErrorKind::RateLimited, Phase::BeforeSend, message);
            return Err(refuse(run, error));
        }
        let place = self.calls.token();
        call.request.check().map_err(|error| refuse(run, error))?;
        let upcoming = AdmittedCall {
            run,
            now_ms,
            call,
            admission,
            fleet: config.fleet.clone(),
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
        let opened = self.runs.journal.open_account(tenant, &upcoming.row());
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
        let (journal, run) = (self.runs.journal.clone(), upcoming.run);
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
            run,
            call,
            admission,
            fleet,
            ..
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
        let mut dispatch = BackendSelector::new(fleet.clone(), request, run.seed(), self.runs.monotonic_ms());
        dispatch.allow_models(admission.models);
        let mut hands = RelayDriver {
            run,
            machine: RelayMachine::new(RelayConfig { run, trace }, dispatch),
            tenant: tenant.clone(),
            fleet,
            verbatim,
            account: Some(account),
            clock: self.runs.clock.clone(),
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
    fleet: Arc<Fleet>,
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

fn refuse(run: RunId, error: Error) -> Box<RelayFailure> {
    Box::new(RelayFailure {
        run,
        attempts: 0,
        error,
    })
}

/// A call that cannot be journaled is not started.
fn journal_unavailable(error: &JournalError) -> Error {
    let kind = match error {
        JournalError::Full => ErrorKind::RateLimited,
        _ => ErrorKind::Internal,
    };
    let message = "the journal rejected the call";
    Error::new(kind, Phase::BeforeSend, message)
}
