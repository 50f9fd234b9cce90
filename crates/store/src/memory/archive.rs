//! Queries on runs in memory.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use engine::Tenant;
use engine::port::{
    Archive, AttemptUsage, DAY_MS, JournalError, PruneRequest, PruneResult, ReviewDecision, RunFilter,
    RunSummary, UsageFilter, UsageRow,
};
use ir::RunId;

use super::journal::{MemoryJournal, Run};

#[async_trait]
impl Archive for MemoryJournal {
    async fn list(&self, tenant: &Tenant, filter: &RunFilter) -> Result<Vec<RunSummary>, JournalError> {
        let shelf = self.shelf();
        let own =
            shelf.runs.iter().rev().filter(|((owner, id), _)| {
                *owner == *tenant && filter.before.is_none_or(|before| *id < before)
            });
        let rows = own.map(|(_, run)| RunSummary::from(run.row()));
        let fitting = rows.filter(|row| filter.state.is_none_or(|state| row.shown() == state));
        Ok(fitting.take(filter.limit).collect())
    }

    async fn review(&self, tenant: &Tenant, id: RunId, verdict: &ReviewDecision) -> Result<(), JournalError> {
        let mut shelf = self.shelf();
        let run = shelf
            .runs
            .get_mut(&(tenant.clone(), id))
            .ok_or(JournalError::Unknown(id))?;
        match &mut run.review {
            Some(review) if review.verdict.is_none() => {
                review.verdict = Some(verdict.clone());
                Ok(())
            }
            _ => Err(JournalError::NotInReview(id)),
        }
    }

    async fn attempt_usage(&self, tenant: &Tenant, run: RunId) -> Result<Vec<AttemptUsage>, JournalError> {
        let shelf = self.shelf();
        let accounts = shelf
            .spent
            .iter()
            .filter(|account| account.tenant == *tenant && account.run == run);
        let mut spent: Vec<_> = accounts.map(|account| account.spent.clone()).collect();
        spent.sort_by_key(|spent| spent.attempt);
        Ok(spent)
    }

    async fn usage(
        &self,
        tenant: Option<&Tenant>,
        filter: &UsageFilter,
    ) -> Result<Vec<UsageRow>, JournalError> {
        let shelf = self.shelf();
        let mut lines = BTreeMap::new();
        for account in &shelf.spent {
            let early = filter.since_ms.is_some_and(|since| account.at_ms < since);
            let late = filter.until_ms.is_some_and(|until| account.at_ms >= until);
            if early || late || tenant.is_some_and(|tenant| account.tenant != *tenant) {
                continue;
            }
            let spent = &account.spent;
            let group = (
                filter.by_day.then_some(account.at_ms / DAY_MS),
                filter.by_client.then(|| account.client.clone()),
                account.module.clone().filter(|_| filter.by_module),
                spent.model.clone().filter(|_| filter.by_model),
            );
            let (line, runs) = lines
                .entry(group)
                .or_insert_with(|| (UsageRow::default(), BTreeSet::new()));
            runs.insert((account.tenant.clone(), account.run));
            line.attempts += u64::from(spent.attempt > 0);
            add(&mut line.input_tokens, spent.input_tokens);
            add(&mut line.output_tokens, spent.output_tokens);
            add(&mut line.estimated_tokens, spent.estimated_tokens);
            line.unknown += u64::from(spent.input_tokens.is_none() || spent.output_tokens.is_none());
        }
        let lines = lines
            .into_iter()
            .map(|((day, client, module, model), (line, runs))| UsageRow {
                day,
                client,
                module,
                model,
                runs: runs.len() as u64,
                ..line
            });
        Ok(lines.collect())
    }

    async fn newest_run_ms(&self) -> Result<Option<u64>, JournalError> {
        Ok(self.shelf().runs.keys().map(|(_, id)| id.at_ms()).max())
    }

    async fn prune(&self, retention: &PruneRequest) -> Result<PruneResult, JournalError> {
        let mut shelf = self.shelf();
        let held: usize = shelf.runs.values().map(bytes).sum();
        let too_much = held as u64 > retention.bytes_max;
        let once_since_ms = match too_much {
            true => retention.once_short_since_ms,
            false => retention.idempotency_since_ms,
        };
        let mut old: Vec<_> = shelf
            .runs
            .iter()
            .filter_map(|(key, run)| Some((run.finished.as_ref()?.at_ms, key.clone(), run)))
            .filter(|(at_ms, _, run)| {
                let waits = run.review.as_ref().is_some_and(|review| review.verdict.is_none());
                let named = run.new.once.is_some() && run.new.created_at_ms >= once_since_ms;
                !waits && !named && (too_much || *at_ms < retention.before_ms)
            })
            .map(|(at_ms, key, _)| (at_ms, key))
            .collect();
        old.sort();
        old.truncate(retention.batch);
        for (_, key) in &old {
            shelf.runs.remove(key);
        }
        shelf
            .spent
            .retain(|account| account.at_ms >= retention.usage_before_ms);
        Ok(PruneResult {
            runs: old.len(),
            more: old.len() >= retention.batch,
        })
    }
}

fn add(sum: &mut Option<u64>, count: Option<u64>) {
    if let Some(count) = count {
        *sum = Some(sum.unwrap_or_default().saturating_add(count));
    }
}

fn bytes(run: &Run) -> usize {
    let events: usize = run.events.iter().map(|event| event.body.len()).sum();
    events + run.new.command.len()
}
