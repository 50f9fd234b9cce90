//! Recovery of the runs that an earlier server left unfinished, once, when a server starts: each is rerun where
//! that is safe, and closed otherwise. A full journal does not block the start of the server: closing is
//! retried in the background, and left to the next server's recovery if this one stops first.

use std::sync::Arc;

use ir::RunId;
use tenancy::Tenant;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::config::EngineConfig;
use crate::error::Error;
use crate::launch::RunSpec;
use crate::limits;
use crate::media::{KeptFiles, from_journal, remove_ended};
use crate::port::{EncodedEvent, EventKind, Journal, JournalError, RunEnd, RunKind, RunRecord};
use crate::preflight::is_safe_to_rerun;
use crate::run::{RecoveredRun, encode, interrupted_chunk, replay};
use crate::runs::Runs;

pub(crate) struct Recovery<'a> {
    config: &'a Arc<EngineConfig>,
    runs: &'a Runs,
}

impl<'a> Recovery<'a> {
    pub(crate) fn new(config: &'a Arc<EngineConfig>, runs: &'a Runs) -> Self {
        Self { config, runs }
    }

    pub(crate) async fn recover(&self) -> Result<(), Error> {
        let modules = &self.config.modules;
        let (unfinished, files) = (
            self.runs.journal.unfinished().await?,
            self.config.media.run_files(),
        );
        remove_ended(files, unfinished.iter().map(|(_, row)| row.id));
        for (tenant, row) in unfinished {
            let kept = KeptFiles::new(files, row.id, Vec::new(), &self.runs.stop);
            let replayed = replay(&self.runs.journal, &tenant, row.id).await;
            if let Err(error) = &replayed {
                warn!(run = %row.id, %error, "events of an unfinished run cannot be read");
            }
            let is_readable = replayed.is_ok();
            let recovered = replayed.unwrap_or_else(|_| RecoveredRun {
                offset: row.last_offset,
                ..RecoveredRun::default()
            });
            let module = row
                .kind
                .module()
                .and_then(|name| modules.get(name))
                .filter(|module| is_safe_to_rerun(module, modules));
            let command = module.and_then(|module| from_journal(module, row.id, &row.command, files));
            match (module, command) {
                (Some(module), Some(command))
                    if is_readable && command.can_rerun() && self.may_restart(&tenant, &row).await =>
                {
                    info!(run = %row.id, module = module.name(), "rerun of an unfinished run");
                    let spec = RunSpec {
                        id: row.id,
                        tenant,
                        module: module.clone(),
                        command,
                        warnings: Vec::new(),
                        recovered: Some(recovered),
                    };
                    let mut io = self.runs.register(&spec);
                    io.kept = kept;
                    self.runs.spawn(self.config, spec, io, None, None);
                }
                _ => {
                    warn!(run = %row.id, module = row.kind.module(), "close of an unfinished run");
                    self.close(tenant, row, recovered).await?;
                }
            }
        }
        Ok(())
    }

    /// Counts the recovery before the run starts, so that a run that ends its server is counted as well.
    async fn may_restart(&self, tenant: &Tenant, row: &RunRecord) -> bool {
        match self.runs.journal.count_recovery(tenant, row.id).await {
            Ok(count) => count <= limits::RECOVERIES_MAX,
            Err(error) => {
                warn!(run = %row.id, %error, "the recovery of an unfinished run could not be recorded");
                false
            }
        }
    }

    /// Closes the run, or spawns a task that retries if the journal cannot be written.
    async fn close(
        &self,
        tenant: Tenant,
        row: RunRecord,
        recovered: RecoveredRun,
    ) -> Result<(), JournalError> {
        let offset = recovered.offset;
        let last = match row.kind {
            RunKind::Relay => (offset > 0).then(|| EncodedEvent {
                kind: EventKind::Interrupted,
                seq: None,
                body: Arc::from(""),
            }),
            RunKind::Module(_) => Some(encode(&interrupted_chunk(
                row.id,
                recovered,
                &self.config.settings,
            ))),
        };
        let code = Some(String::from(module::Code::E2010.as_str()));
        let interrupted = InterruptedRun {
            tenant,
            run: row.id,
            offset,
            last,
            end: RunEnd::new(code, self.runs.clock.now_ms(), Vec::new()),
        };
        match interrupted.write(&self.runs.journal).await {
            Err(JournalError::Full | JournalError::Storage(_)) => {
                warn!(run = %row.id, "closing of an unfinished run failed; retry scheduled");
                let (journal, stop) = (self.runs.journal.clone(), self.runs.stop.clone());
                self.runs.tasks.spawn(interrupted.retry(journal, stop));
                Ok(())
            }
            written => written,
        }
    }
}

/// A run to close.
struct InterruptedRun {
    tenant: Tenant,
    run: RunId,
    /// Offset of the last journal entry of the run.
    offset: u64,
    /// `None` for a relayed call without journaled frames.
    last: Option<EncodedEvent>,
    end: RunEnd,
}

impl InterruptedRun {
    async fn retry(self, journal: Arc<dyn Journal>, stop: CancellationToken) {
        let pause = || tokio::time::sleep(limits::CLOSE_RETRY);
        while stop.run_until_cancelled(pause()).await.is_some() {
            match self.write(&journal).await {
                Err(JournalError::Full | JournalError::Storage(_)) => {}
                Ok(()) | Err(_) => return,
            }
        }
    }

    async fn write(&self, journal: &Arc<dyn Journal>) -> Result<(), JournalError> {
        let last = self.last.as_slice();
        journal
            .finish(&self.tenant, self.run, self.offset, last, &self.end)
            .await
    }
}
