//! One call of a module, whichever transport brought it: the mode is negotiated, a broken stream is
//! found again, or a run is started. What comes out is a subscription and how to answer with it.

use std::sync::Arc;
use std::time::Duration;

use engine::run::Warning;
use engine::{Admission, RunRequest, ReadFrom, RunMode, Permit, Queue, Subscription};
use futures::FutureExt;
use module::envelope::ErrorBody;
use module::{Code, Module};
use tenancy::Scope;

use crate::limit::Acquire;
use crate::negotiate::{Downgrade, Negotiated, ModeSignals};
use crate::idempotency::IdempotencyHeaders;
use crate::response::ApiError;
use crate::request::{ExecuteBody, RecoveryRequest};
use crate::stream_limit::{ClientStreams, StreamPermit};
use crate::state::Gateway;

/// A module, an input, and everything that was said about the answer.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) client: ClientStreams,
    pub(crate) module: Arc<Module>,
    pub(crate) body: ExecuteBody,
    pub(crate) signals: ModeSignals,
    pub(crate) repeat: IdempotencyHeaders,
}

/// A run that can be read.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) subscription: Subscription,
    pub(crate) mode: RunMode,
    pub(crate) downgrade: Option<Downgrade>,
    pub(crate) heartbeat: Duration,
    /// Streams count against the client until they are dropped.
    pub(crate) seat: Option<StreamPermit>,
    /// The request came before, and nothing was done again.
    pub(crate) replayed: bool,
}

impl Begun {
    fn replayed(self) -> Self {
        Self {
            replayed: true,
            ..self
        }
    }
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
        let seat = match negotiated.mode {
            RunMode::Stream => Some(self.sit(gateway)?),
            RunMode::Sync => None,
        };
        let mut warnings: Vec<Warning> = negotiated.warning.map(Downgrade::warning).into_iter().collect();
        if let Some(recovery) = self.body.recovery.take() {
            match self.resume(gateway, &recovery, strict).await? {
                Some(subscription) => return Ok(self.begun(subscription, &negotiated, seat)),
                None if strict => {
                    let message = format!("there is no session {} to resume", recovery.session_id);
                    return Err(ApiError::new(ErrorBody::new(Code::E4013, message)));
                }
                None => {
                    let message = format!("session {} is gone; a new one was started", recovery.session_id);
                    warnings.push(Warning::new(Code::W4013, message));
                }
            }
        }
        let repeatable = self.repeat.key_for(&self.module, &self.body, negotiated.mode);
        let tenant = &caller.tenant;
        if let Some(repeatable) = &repeatable {
            // Before it lines up: what was done already takes nobody's place.
            let made = gateway.engine.made(tenant, &caller.client, repeatable).await?;
            if let Some(run) = made {
                let subscription = gateway.engine.subscribe(tenant, run, ReadFrom::Start).await?;
                return Ok(self.begun(subscription, &negotiated, seat).replayed());
            }
        }
        let command = RunRequest {
            module: self.module.clone(),
            options: self.body.options.run_options(),
            input: std::mem::take(&mut self.body.input),
            mode: negotiated.mode,
            warnings,
        };
        let (permit, queue) = self.turn(gateway, negotiated.mode).await?;
        let admission = Admission {
            client: caller.client.clone(),
            once: repeatable,
            resumable: self.repeat.survives_disconnect(),
            models: caller.models.names().map(<[String]>::to_vec),
            permit,
            queue,
        };
        let started = gateway.engine.submit(tenant, command, admission).await;
        let (run, replayed) = match started {
            Ok(run) => (run, false),
            Err(engine::Error::DuplicateRequest(named)) if named.same_request => (named.run, true),
            Err(error) => return Err(error.into()),
        };
        let subscription = gateway.engine.subscribe(tenant, run, ReadFrom::Start).await?;
        if self.repeat.survives_disconnect() && negotiated.mode == RunMode::Sync && !replayed {
            let kept = gateway.engine.subscribe(tenant, run, ReadFrom::Start).await?;
            // Somebody always listens, so the run goes on when its caller has left.
            gateway.detached_runs.spawn(async move { drop(kept.terminal_event().await) });
        }
        let begun = self.begun(subscription, &negotiated, seat);
        Ok(if replayed { begun.replayed() } else { begun })
    }

    /// A place for the run. A stream that has to wait for one begins all the same, and says that it waits; whoever
    /// wants a whole answer has nothing to be told before it.
    async fn turn(&self, gateway: &Gateway, mode: RunMode) -> Result<(Option<Permit>, Option<Queue>), ApiError> {
        match gateway.limiter.try_acquire(&self.client.caller)? {
            Acquire::Ready(turn) => Ok((Some(Permit::new(turn)), None)),
            Acquire::Queued(wait) if mode == RunMode::Stream => {
                let wait = wait.map(|turn| {
                    let turn = turn.map(Permit::new);
                    turn.map_err(|refusal| Box::new(refusal.into_body()))
                });
                Ok((None, Some(Queue::new(wait))))
            }
            Acquire::Queued(wait) => Ok((Some(Permit::new(wait.await?)), None)),
        }
    }

    fn sit(&self, gateway: &Gateway) -> Result<StreamPermit, ApiError> {
        let max = gateway.settings().streams_per_client_max;
        gateway.stream_limiter.acquire(&self.client, max)
    }

    /// The rest of a run, if there is such a run of this module.
    async fn resume(
        &self,
        gateway: &Gateway,
        recovery: &RecoveryRequest,
        strict: bool,
    ) -> Result<Option<Subscription>, ApiError> {
        let tenant = &self.client.caller.tenant;
        let Some(run) = recovery.run() else {
            return Ok(None);
        };
        match gateway.engine.find(tenant, run).await? {
            Some(row) if row.module == self.module.name() => {}
            _ => return Ok(None),
        }
        let from = ReadFrom::AfterChunk(recovery.resume_point(strict));
        Ok(Some(gateway.engine.subscribe(tenant, run, from).await?))
    }

    fn begun(&self, subscription: Subscription, negotiated: &Negotiated, seat: Option<StreamPermit>) -> Begun {
        Begun {
            subscription,
            mode: negotiated.mode,
            downgrade: negotiated.warning,
            heartbeat: heartbeat(&self.module),
            seat,
            replayed: false,
        }
    }
}

/// How long a stream may be silent; a module that says 0 wants no signs of life.
pub(crate) fn heartbeat(module: &Module) -> Duration {
    match module.manifest.response.heartbeat_interval_ms {
        0 => Duration::MAX,
        ms => Duration::from_millis(ms),
    }
}
