//! Which runs `prune` deletes: by age, by size, and never a run that is still needed.

use std::sync::Arc;

use engine::Tenant;
use engine::port::{
    EventKind, IdempotencyClaim, JournalError, NewRun, PruneRequest, RunEnd, RunFilter, UsageFilter,
};
use ir::RunId;

use super::super::journal::{last, new, run};
use super::{Stores, end};

pub(super) async fn old_runs_are_deleted_and_their_usage_is_kept((journal, archive): Stores) {
    let tenant = Tenant::local();
    for number in 1..=5 {
        journal.create(&tenant, &new(run(number))).await.unwrap();
        end(&journal, number, None, None, 10 * number as u64).await;
    }
    let mut retention = prune_before(40);
    retention.batch = 2;
    let pruned = archive.prune(&retention).await.unwrap();
    assert_eq!((pruned.runs, pruned.more), (2, true));
    let pruned = archive.prune(&retention).await.unwrap();
    assert_eq!((pruned.runs, pruned.more), (1, false));
    for (number, there) in [(1, false), (2, false), (3, false), (4, true), (5, true)] {
        assert_eq!(journal.find(&tenant, run(number)).await.unwrap().is_some(), there);
        assert_eq!(
            archive.attempt_usage(&tenant, run(number)).await.unwrap().len(),
            1
        );
    }
    let gone = journal.read(&tenant, run(1), 0, 1).await;
    assert!(matches!(gone, Err(JournalError::Unknown(_))), "{gone:?}");
    retention.usage_before_ms = 30;
    archive.prune(&retention).await.unwrap();
    let all = archive.usage(None, &UsageFilter::default()).await.unwrap();
    assert_eq!(all[0].runs, 3);
}

pub(super) async fn running_reviewed_and_idempotent_runs_are_kept((journal, archive): Stores) {
    let tenant = Tenant::local();
    for number in 1..=3 {
        journal.create(&tenant, &new(run(number))).await.unwrap();
    }
    let named = NewRun {
        created_at_ms: 50,
        once: Some(IdempotencyClaim {
            key: String::from("k"),
            fingerprint: String::from("f"),
            since_ms: 0,
        }),
        ..new(run(4))
    };
    journal.create(&tenant, &named).await.unwrap();
    end(&journal, 2, None, Some("high risk"), 10).await;
    end(&journal, 3, None, None, 10).await;
    end(&journal, 4, None, None, 60).await;
    let mut retention = PruneRequest {
        idempotency_since_ms: 50,
        once_short_since_ms: 51,
        ..prune_before(1_000)
    };
    assert_eq!(archive.prune(&retention).await.unwrap().runs, 1);
    assert_eq!(archive.prune(&retention).await.unwrap().runs, 0);
    // If space is short, idempotency keys expire earlier.
    retention.bytes_max = 0;
    retention.once_short_since_ms = 50;
    assert_eq!(archive.prune(&retention).await.unwrap().runs, 0);
    retention.once_short_since_ms = 51;
    assert_eq!(archive.prune(&retention).await.unwrap().runs, 1);
    for (number, there) in [(1, true), (2, true), (3, false), (4, false)] {
        assert_eq!(
            journal.find(&tenant, run(number)).await.unwrap().is_some(),
            there,
            "{number}"
        );
    }
}

pub(super) async fn the_oldest_runs_are_deleted_above_the_size_limit((journal, archive): Stores) {
    let tenant = Tenant::local();
    let mut large = last(EventKind::Final);
    large.body = Arc::from("x".repeat(100_000));
    for number in 1..=20 {
        journal.create(&tenant, &new(run(number))).await.unwrap();
        let end = RunEnd::new(None, number as u64, Vec::new());
        journal
            .finish(&tenant, run(number), 0, std::slice::from_ref(&large), &end)
            .await
            .unwrap();
    }
    let retention = PruneRequest {
        bytes_max: 1_000_000,
        batch: 1,
        ..prune_before(0)
    };
    while archive.prune(&retention).await.unwrap().more {}
    let filter = RunFilter {
        state: None,
        before: None,
        limit: 100,
    };
    let kept = archive.list(&tenant, &filter).await.unwrap();
    assert!((5..=10).contains(&kept.len()), "{}", kept.len());
    let newest: Vec<RunId> = (1..=20).rev().take(kept.len()).map(run).collect();
    assert_eq!(kept.iter().map(|row| row.id).collect::<Vec<_>>(), newest);
}

fn prune_before(before_ms: u64) -> PruneRequest {
    PruneRequest {
        before_ms,
        bytes_max: u64::MAX,
        idempotency_since_ms: 0,
        once_short_since_ms: 0,
        usage_before_ms: 0,
        batch: 100,
    }
}
