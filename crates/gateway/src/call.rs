//! One module call, for all transports: negotiates the mode, then finds an existing run (recovery,
//! idempotency key) or starts a new one. Returns a subscription and what is needed to write the response.

use std::sync::Arc;
use std::time::Duration;

use engine::run::Warning;
use engine::{Admission, Permit, Queue, ReadFrom, RunMode, RunRequest, StartedRun, Subscription};
use futures::FutureExt;
use module::envelope::ErrorBody;
use module::{Code, Module};
use tenancy::Scope;

use crate::framing::Framing;
use crate::idempotency::IdempotencyHeaders;
use crate::limit::Acquire;
use crate::negotiate::{Downgrade, ModeSignals, Negotiated};
use crate::request::{ExecuteBody, RecoveryRequest};
use crate::response::ApiError;
use crate::resume::{self, ResumeError};
use crate::state::Gateway;
use crate::stream_limit::{ClientStreams, StreamPermit};

/// A module, its input, and the options of the request.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) client: ClientStreams,
    pub(crate) module: Arc<Module>,
    pub(crate) body: ExecuteBody,
    pub(crate) signals: ModeSignals,
    pub(crate) repeat: IdempotencyHeaders,
}

/// A started or found run with its subscription.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) subscription: Subscription,
    pub(crate) mode: RunMode,
    pub(crate) downgrade: Option<Downgrade>,
    pub(crate) framing: Framing,
    pub(crate) heartbeat: Duration,
    /// A stream permit, held until the response is dropped.
    pub(crate) stream_permit: Option<StreamPermit>,
    /// The idempotency key matched an earlier request; no new run was started.
    pub(crate) replayed: bool,
}

impl Call {
    pub(crate) async fn begin(mut self, gateway: &Gateway) -> Result<Begun, ApiError> {
        let caller = self.client.caller.clone();
        caller.require(Scope::Execute)?;
        caller.require_module(self.module.name())?;
        self.signals.body = self.body.options.response_mode;
        let strict = self.body.options.strict;
        let negotiated = self
            .signals
            .negotiate(self.module.manifest.response.mode, strict)?;
        let mut warnings: Vec<Warning> = negotiated.warning.map(Downgrade::warning).into_iter().collect();
        if let Some(recovery) = self.body.recovery.take() {
            match self.resume(gateway, &recovery, &negotiated, strict).await? {
                Some(begun) => return Ok(begun),
                None if strict => {
                    let message = format!("there is no session {} to resume", recovery.session_id);
                    return Err(ApiError::new(ErrorBody::new(Code::E4013, message)));
                }
                None => {
                    let message = format!("session {} not found; a new one was started", recovery.session_id);
                    warnings.push(Warning::new(Code::W4013, message));
                }
            }
        }
        let stream_permit = match negotiated.mode {
            RunMode::Stream => Some(gateway.stream_permit(&self.client)?),
            RunMode::Sync => None,
        };
        let repeatable = self.repeat.key_for(&self.module, &self.body, negotiated.mode);
        let tenant = &caller.tenant;
        if let Some(repeatable) = &repeatable {
            // Checked before a run permit is requested: a replay needs none.
            let replayed = gateway.engine().replay(tenant, &caller.client, repeatable);
            if let Some(started) = replayed.await? {
                return Ok(self.begun(started, &negotiated, stream_permit));
            }
        }
        let (permit, queue) = self.turn(gateway, negotiated.mode).await?;
        let request = RunRequest {
            module: self.module.clone(),
            options: self.body.options.run_options(),
            input: std::mem::take(&mut self.body.input),
            mode: negotiated.mode,
            warnings,
            admission: Admission {
                client: caller.client.clone(),
                once: repeatable,
                resumable: self.repeat.survives_disconnect(),
                models: caller.models.names().map(<[String]>::to_vec),
                meter: None,
                permit,
                queue,
            },
        };
        let started = gateway.engine().start(tenant, request).await?;
        if self.repeat.survives_disconnect() && negotiated.mode == RunMode::Sync && !started.replayed {
            let kept = gateway
                .engine()
                .subscribe(tenant, started.id, ReadFrom::Start)
                .await?;
            // A permanent subscription, so that the run continues when its client disconnects.
            gateway
                .detached_runs
                .spawn(async move { drop(kept.terminal_event().await) });
        }
        Ok(self.begun(started, &negotiated, stream_permit))
    }

    /// A permit for the run. A stream that has to wait for one starts anyway and reports that it is queued; a
    /// synchronous caller waits here.
    async fn turn(
        &self,
        gateway: &Gateway,
        mode: RunMode,
    ) -> Result<(Option<Permit>, Option<Queue>), ApiError> {
        let reserved = self.client.reservation.take_turn();
        let body = self.client.reservation.take_body();
        let reserved = reserved.map_or_else(|| gateway.limiter.try_acquire(&self.client.caller), Ok)?;
        match reserved {
            Acquire::Ready(turn) => Ok((Some(Permit::new((turn, body))), None)),
            Acquire::Queued(wait) if mode == RunMode::Stream => {
                let wait = wait.map(|turn| {
                    let turn = turn.map(|turn| Permit::new((turn, body)));
                    turn.map_err(|refusal| Box::new(refusal.into_body()))
                });
                Ok((None, Some(Queue::new(wait))))
            }
            Acquire::Queued(wait) => Ok((Some(Permit::new((wait.await?, body))), None)),
        }
    }

    /// Subscribes behind the last received chunk, if the run exists and is of this module.
    async fn resume(
        &self,
        gateway: &Gateway,
        recovery: &RecoveryRequest,
        negotiated: &Negotiated,
        strict: bool,
    ) -> Result<Option<Begun>, ApiError> {
        let Some(run) = recovery.run() else {
            return Ok(None);
        };
        let from = ReadFrom::AfterChunk(recovery.resume_point(strict));
        let module = Some(self.module.name());
        match resume::open(gateway, &self.client, run, module, from, negotiated.mode).await {
            Ok(resumed) => {
                let started = StartedRun {
                    id: run,
                    subscription: resumed.subscription,
                    replayed: false,
                };
                Ok(Some(self.begun(started, negotiated, resumed.permit)))
            }
            Err(ResumeError::Unknown | ResumeError::OtherKind) => Ok(None),
            Err(ResumeError::Refused(error)) => Err(error),
        }
    }

    fn begun(
        &self,
        started: StartedRun,
        negotiated: &Negotiated,
        stream_permit: Option<StreamPermit>,
    ) -> Begun {
        Begun {
            subscription: started.subscription,
            mode: negotiated.mode,
            downgrade: negotiated.warning,
            framing: self.signals.framing,
            heartbeat: heartbeat(&self.module),
            stream_permit,
            replayed: started.replayed,
        }
    }
}

/// Interval between heartbeats of a stream; 0 in the manifest turns heartbeats off.
pub(crate) fn heartbeat(module: &Module) -> Duration {
    match module.manifest.response.heartbeat_interval_ms {
        0 => Duration::MAX,
        ms => Duration::from_millis(ms),
    }
}
