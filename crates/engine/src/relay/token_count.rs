//! The account of a token count: like a relayed call it is on record before a back-end is called, and its end is
//! recorded when the guard is dropped, also if the caller disconnected.

use std::fmt;
use std::sync::Arc;

use ir::{Request, RunId};
use module::Code;
use serde_json::json;
use tenancy::Tenant;

use super::RelayFailure;
use super::start::{Relay, journal_unavailable, refuse};
use crate::admission::Admission;
use crate::config::EngineConfig;
use crate::port::{Account, AttemptUsage, Clock, NewRun, RunEnd, RunKind};
use crate::run::AttemptOutcome;
use crate::tokens::{TokenCount, counting_backend, estimated_count, exact_count};

/// Ends the account when it is dropped.
struct CountAccount {
    account: Option<Account>,
    clock: Arc<dyn Clock>,
    model: Option<String>,
    /// The back-end that was called, if any.
    backend: Option<String>,
    is_counted: bool,
}

impl fmt::Debug for CountAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CountAccount").finish_non_exhaustive()
    }
}

impl Relay {
    pub(crate) async fn count_tokens(
        &self,
        config: &EngineConfig,
        tenant: &Tenant,
        request: Arc<Request>,
        admission: Admission,
    ) -> Result<TokenCount, Box<RelayFailure>> {
        let Admission { client, permit, .. } = admission;
        let _permit = permit;
        let mut account = self.open_count(tenant, &request, client).await?;
        let backend = counting_backend(config, self.runs.monotonic_ms(), &request).await;
        account.backend = backend.as_ref().map(|(name, _)| name.clone());
        let counted = match backend {
            Some((_, upstream)) => exact_count(upstream.as_ref(), &request).await,
            None => None,
        };
        account.is_counted = true;
        Ok(TokenCount {
            tokens: counted.unwrap_or_else(|| estimated_count(&request)),
            estimated: counted.is_none(),
        })
    }

    async fn open_count(
        &self,
        tenant: &Tenant,
        request: &Request,
        client: String,
    ) -> Result<CountAccount, Box<RelayFailure>> {
        let (clock, model) = (self.runs.clock.clone(), request.model().map(String::from));
        let now_ms = clock.now_ms();
        let run = RunId::from_parts(now_ms, clock.random());
        let row = NewRun {
            id: run,
            kind: RunKind::Relay,
            command: json!({"relayed": "count_tokens", "model": model}).to_string(),
            created_at_ms: now_ms,
            client,
            once: None,
        };
        let opened = self.runs.journal.open_account(tenant, &row);
        let (account, started) = opened.map_err(|error| refuse(run, journal_unavailable(&error)))?;
        let guard = CountAccount {
            account: Some(account),
            clock,
            model,
            backend: None,
            is_counted: false,
        };
        let started = started.await;
        started.map_err(|error| refuse(run, journal_unavailable(&error)))?;
        Ok(guard)
    }
}

impl Drop for CountAccount {
    fn drop(&mut self) {
        let outcome = match self.is_counted {
            true => AttemptOutcome::Succeeded,
            false => AttemptOutcome::Cancelled,
        };
        let usage = AttemptUsage {
            attempt: 1,
            backend: self.backend.take(),
            model: self.model.take(),
            outcome: String::from(outcome.as_str()),
            // No model reads or writes tokens for a count.
            input_tokens: Some(0),
            output_tokens: Some(0),
            estimated_tokens: None,
        };
        let code = (!self.is_counted).then(|| String::from(Code::E2010.as_str()));
        if let Some(account) = self.account.take() {
            account.end(RunEnd::new(code, self.clock.now_ms(), vec![usage]));
        }
    }
}
