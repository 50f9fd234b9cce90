//! Conformance cases of the archive port: listing, review, usage and pruning of runs. Each case gets an empty
//! journal.

mod retention;

use std::sync::Arc;

use engine::Tenant;
use engine::port::{
    Account, Archive, AttemptUsage, DAY_MS, EventKind, Journal, JournalError, NewRun, ReviewDecision,
    ReviewOutcome, RunEnd, RunFilter, RunKind, RunStatus, UsageFilter, UsageRow,
};
use ir::RunId;

use super::journal::{chunks, last, new, run};

/// One store, as its two ports.
type Stores = (Arc<dyn Journal>, Arc<dyn Archive>);

/// Runs every case.
pub async fn suite<F>(empty: impl Fn() -> F)
where
    F: Future<Output = Stores>,
{
    runs_are_listed_newest_first_page_by_page(empty().await).await;
    the_newest_run_of_all_tenants_is_found(empty().await).await;
    runs_are_found_by_their_state(empty().await).await;
    the_first_review_decision_is_final(empty().await).await;
    every_run_is_accounted_for_exactly_once(empty().await).await;
    accounts_count_once_and_are_visible_at_once(empty().await).await;
    a_run_with_events_is_ended_by_its_writer(empty().await).await;
    unawaited_writes_keep_their_order(empty().await).await;
    usage_adds_up_and_unknown_stays_unknown(empty().await).await;
    usage_is_cut_by_time_and_tenant(empty().await).await;
    retention::old_runs_are_deleted_and_their_usage_is_kept(empty().await).await;
    retention::running_reviewed_and_idempotent_runs_are_kept(empty().await).await;
    retention::the_oldest_runs_are_deleted_above_the_size_limit(empty().await).await;
}

async fn runs_are_listed_newest_first_page_by_page((journal, archive): Stores) {
    let tenant = Tenant::local();
    for number in 1..=5 {
        journal.create(&tenant, &new(run(number))).await.unwrap();
    }
    journal.create(&Tenant::new("other"), &new(run(9))).await.unwrap();
    let mut filter = RunFilter {
        state: None,
        before: None,
        limit: 2,
    };
    let mut seen = Vec::new();
    loop {
        let page = archive.list(&tenant, &filter).await.unwrap();
        assert!(page.len() <= 2);
        let Some(oldest) = page.last() else { break };
        filter.before = Some(oldest.id);
        seen.extend(page.iter().map(|row| row.id));
    }
    assert_eq!(seen, [5, 4, 3, 2, 1].map(run));
}

async fn the_newest_run_of_all_tenants_is_found((journal, archive): Stores) {
    assert_eq!(archive.newest_run_ms().await.unwrap(), None);
    for (tenant, at_ms) in [("b", 7), ("a", 9), ("c", 8)] {
        let new = new(RunId::from_parts(at_ms, 1));
        journal.create(&Tenant::new(tenant), &new).await.unwrap();
    }
    assert_eq!(archive.newest_run_ms().await.unwrap(), Some(9));
}

async fn runs_are_found_by_their_state((journal, archive): Stores) {
    let tenant = Tenant::local();
    for number in 1..=4 {
        journal.create(&tenant, &new(run(number))).await.unwrap();
    }
    end(&journal, 2, None, None, 5).await;
    end(&journal, 3, Some("E2010"), None, 6).await;
    end(&journal, 4, None, Some("low confidence"), 7).await;
    for (state, number) in [
        (RunStatus::Running, 1),
        (RunStatus::Done, 2),
        (RunStatus::Failed, 3),
        (RunStatus::NeedsReview, 4),
    ] {
        let filter = RunFilter {
            state: Some(state),
            before: None,
            limit: 10,
        };
        let rows = archive.list(&tenant, &filter).await.unwrap();
        assert_eq!(
            rows.iter().map(|row| row.id).collect::<Vec<_>>(),
            [run(number)],
            "{state:?}"
        );
        assert_eq!(rows[0].shown(), state);
        assert_eq!(rows[0].client, "c");
    }
}

async fn the_first_review_decision_is_final((journal, archive): Stores) {
    let tenant = Tenant::local();
    for number in 1..=2 {
        journal.create(&tenant, &new(run(number))).await.unwrap();
    }
    end(&journal, 1, None, Some("high risk"), 5).await;
    end(&journal, 2, None, None, 5).await;
    let edited = ReviewDecision {
        decision: ReviewOutcome::Edited,
        by: String::from("key:1"),
        comment: Some(String::from("now it is right")),
        data: Some(String::from(r#"{"rationale":"r"}"#)),
        at_ms: 9,
    };
    archive.review(&tenant, run(1), &edited).await.unwrap();
    let row = journal.find(&tenant, run(1)).await.unwrap().unwrap();
    let review = row.review.unwrap();
    assert_eq!(
        (review.reason.as_str(), review.verdict),
        ("high risk", Some(edited.clone()))
    );
    for (number, tenant) in [(1, &tenant), (2, &tenant)] {
        let late = archive.review(tenant, run(number), &edited).await;
        assert!(matches!(late, Err(JournalError::NotInReview(_))), "{late:?}");
    }
    let foreign = archive.review(&Tenant::new("other"), run(1), &edited).await;
    assert!(matches!(foreign, Err(JournalError::Unknown(_))), "{foreign:?}");
    let filter = RunFilter {
        state: Some(RunStatus::Done),
        before: None,
        limit: 10,
    };
    assert_eq!(archive.list(&tenant, &filter).await.unwrap().len(), 2);
}

async fn every_run_is_accounted_for_exactly_once((journal, archive): Stores) {
    let tenant = Tenant::local();
    journal.create(&tenant, &new(run(1))).await.unwrap();
    journal.append(&tenant, run(1), 0, &chunks(1..=2)).await.unwrap();
    assert_eq!(archive.attempt_usage(&tenant, run(1)).await.unwrap(), []);
    let attempts = vec![attempt(1, None, None), attempt(2, Some(10), Some(4))];
    let good = RunEnd::new(None, 7, attempts.clone());
    // A fenced writer records no usage.
    let stale = journal
        .finish(&tenant, run(1), 1, &[last(EventKind::Final)], &good)
        .await;
    assert!(matches!(stale, Err(JournalError::Fenced(_))), "{stale:?}");
    assert_eq!(archive.attempt_usage(&tenant, run(1)).await.unwrap(), []);
    journal
        .finish(&tenant, run(1), 2, &[last(EventKind::Final)], &good)
        .await
        .unwrap();
    let again = journal
        .finish(&tenant, run(1), 3, &[last(EventKind::Final)], &good)
        .await;
    assert!(matches!(again, Err(JournalError::Ended(_))), "{again:?}");
    assert_eq!(archive.attempt_usage(&tenant, run(1)).await.unwrap(), attempts);
    // A run without attempts has an entry with unknown usage.
    journal.create(&tenant, &new(run(2))).await.unwrap();
    end(&journal, 2, Some("E2010"), None, 8).await;
    assert_eq!(
        archive.attempt_usage(&tenant, run(2)).await.unwrap(),
        [AttemptUsage::unknown()]
    );
    assert_eq!(
        archive
            .attempt_usage(&Tenant::new("other"), run(1))
            .await
            .unwrap(),
        []
    );
}

/// The account of a call whose start is recorded.
async fn open(journal: &Arc<dyn Journal>, number: u128) -> Account {
    let call = NewRun {
        kind: RunKind::Relay,
        ..new(run(number))
    };
    let (account, started) = journal.open_account(&Tenant::local(), &call).unwrap();
    started.await.unwrap();
    account
}

async fn accounts_count_once_and_are_visible_at_once((journal, archive): Stores) {
    let tenant = Tenant::local();
    let good = |tokens: u64| {
        let spent = AttemptUsage {
            attempt: 1,
            model: Some(String::from("m")),
            outcome: String::from("succeeded"),
            input_tokens: Some(tokens),
            output_tokens: Some(1),
            ..AttemptUsage::default()
        };
        RunEnd::new(None, 7, vec![spent])
    };
    for number in 1..=50 {
        open(&journal, number).await.end(good(10));
    }
    let row = journal.find(&tenant, run(50)).await.unwrap().unwrap();
    assert_eq!(
        (RunStatus::of(row.state, None), row.last_offset, row.kind),
        (RunStatus::Done, 0, RunKind::Relay)
    );
    let lines = archive
        .usage(Some(&tenant), &UsageFilter::default())
        .await
        .unwrap();
    assert_eq!((lines[0].runs, lines[0].input_tokens), (50, Some(500)));
    assert_eq!(archive.attempt_usage(&tenant, run(3)).await.unwrap().len(), 1);
    // A call with an open account is unfinished; one that failed without attempts has unknown usage.
    let account = open(&journal, 51).await;
    let unfinished = journal.unfinished().await.unwrap();
    assert_eq!(
        unfinished.iter().map(|(_, row)| row.id).collect::<Vec<_>>(),
        [run(51)]
    );
    account.end(RunEnd::new(Some(String::from("E4001")), 8, Vec::new()));
    assert_eq!(
        archive.attempt_usage(&tenant, run(51)).await.unwrap(),
        [AttemptUsage::unknown()]
    );
    let row = journal.find(&tenant, run(51)).await.unwrap().unwrap();
    assert_eq!(row.finished.unwrap().code.as_deref(), Some("E4001"));
    // A call that another writer has ended keeps the usage of that writer.
    let account = open(&journal, 52).await;
    journal.find(&tenant, run(52)).await.unwrap().unwrap();
    end(&journal, 52, None, None, 5).await;
    let known = archive.attempt_usage(&tenant, run(52)).await.unwrap();
    account.end(good(10));
    assert_eq!(archive.attempt_usage(&tenant, run(52)).await.unwrap(), known);
}

async fn a_run_with_events_is_ended_by_its_writer((journal, _): Stores) {
    let tenant = Tenant::local();
    let account = open(&journal, 54).await;
    journal.find(&tenant, run(54)).await.unwrap().unwrap();
    let event = last(EventKind::Progress);
    journal.append(&tenant, run(54), 0, &[event]).await.unwrap();
    account.end(RunEnd::new(None, 9, Vec::new()));
    let row = journal.find(&tenant, run(54)).await.unwrap().unwrap();
    assert_eq!(row.finished, None);
    let ended = RunEnd::new(None, 9, Vec::new());
    let tail = [last(EventKind::Final)];
    journal.finish(&tenant, run(54), 1, &tail, &ended).await.unwrap();
}

/// The order of the calls is the order of the writes, whether or not anyone waits.
async fn unawaited_writes_keep_their_order((journal, _): Stores) {
    let tenant = Tenant::local();
    drop(journal.create(&tenant, &new(run(1))));
    for seq in 1..=9 {
        drop(journal.append(&tenant, run(1), seq - 1, &chunks(seq..=seq)));
    }
    let tail = [last(EventKind::Final)];
    let end = RunEnd::new(None, 9, Vec::new());
    journal.finish(&tenant, run(1), 9, &tail, &end).await.unwrap();
    assert_eq!(journal.read(&tenant, run(1), 0, 20).await.unwrap().len(), 10);
}

async fn usage_adds_up_and_unknown_stays_unknown((journal, archive): Stores) {
    let tenant = Tenant::local();
    for (number, module, spent) in [
        (
            1,
            "a",
            vec![attempt(1, Some(10), Some(1)), attempt(2, Some(5), Some(2))],
        ),
        (2, "a", vec![attempt(1, None, None)]),
        (3, "b", Vec::new()),
    ] {
        let row = NewRun {
            kind: RunKind::Module(String::from(module)),
            ..new(run(number))
        };
        journal.create(&tenant, &row).await.unwrap();
        let end = RunEnd::new(None, DAY_MS + number as u64, spent);
        journal
            .finish(&tenant, run(number), 0, &[last(EventKind::Final)], &end)
            .await
            .unwrap();
    }
    let by_module = UsageFilter {
        by_module: true,
        by_day: true,
        ..UsageFilter::default()
    };
    let line = |module: &str, runs, attempts, input_tokens, output_tokens, unknown| UsageRow {
        module: Some(String::from(module)),
        day: Some(1),
        runs,
        attempts,
        input_tokens,
        output_tokens,
        unknown,
        ..UsageRow::default()
    };
    assert_eq!(
        archive.usage(Some(&tenant), &by_module).await.unwrap(),
        [
            line("a", 2, 3, Some(15), Some(3), 1),
            line("b", 1, 0, None, None, 1)
        ]
    );
    let by_model = UsageFilter {
        by_model: true,
        by_client: true,
        ..UsageFilter::default()
    };
    let lines = archive.usage(None, &by_model).await.unwrap();
    let models: Vec<_> = lines.iter().map(|line| line.model.as_deref()).collect();
    assert_eq!(models, [None, Some("m1"), Some("m2")]);
    assert!(
        lines
            .iter()
            .all(|line| line.client.as_deref() == Some("c") && line.day.is_none())
    );
    let all = archive.usage(None, &UsageFilter::default()).await.unwrap();
    assert_eq!((all.len(), all[0].runs, all[0].input_tokens), (1, 3, Some(15)));
}

async fn usage_is_cut_by_time_and_tenant((journal, archive): Stores) {
    let other = Tenant::new("other");
    for (tenant, number, at_ms) in [
        (Tenant::local(), 1, 10),
        (Tenant::local(), 2, 20),
        (other.clone(), 3, 20),
    ] {
        journal.create(&tenant, &new(run(number))).await.unwrap();
        let end = RunEnd::new(None, at_ms, Vec::new());
        journal
            .finish(&tenant, run(number), 0, &[last(EventKind::Final)], &end)
            .await
            .unwrap();
    }
    let runs = |tenant: Option<Tenant>, since_ms, until_ms| {
        let archive = archive.clone();
        async move {
            let filter = UsageFilter {
                since_ms,
                until_ms,
                ..UsageFilter::default()
            };
            let lines = archive.usage(tenant.as_ref(), &filter).await.unwrap();
            lines.iter().map(|line| line.runs).sum::<u64>()
        }
    };
    assert_eq!(runs(None, None, None).await, 3);
    assert_eq!(runs(Some(other), None, None).await, 1);
    assert_eq!(runs(Some(Tenant::local()), Some(11), None).await, 1);
    assert_eq!(runs(Some(Tenant::local()), Some(10), Some(20)).await, 1);
    assert_eq!(runs(Some(Tenant::local()), None, Some(u64::MAX)).await, 2);
    assert_eq!(runs(Some(Tenant::new("no-such-tenant")), None, None).await, 0);
}

fn attempt(number: u32, input_tokens: Option<u64>, output_tokens: Option<u64>) -> AttemptUsage {
    AttemptUsage {
        attempt: number,
        backend: Some(String::from("b")),
        model: Some(format!("m{number}")),
        outcome: String::from("succeeded"),
        input_tokens,
        output_tokens,
        estimated_tokens: None,
    }
}

async fn end(journal: &Arc<dyn Journal>, number: u128, code: Option<&str>, review: Option<&str>, at_ms: u64) {
    let mut end = RunEnd::new(code.map(String::from), at_ms, Vec::new());
    end.review = review.map(String::from);
    let kind = if code.is_none() {
        EventKind::Final
    } else {
        EventKind::Error
    };
    let tenant = Tenant::local();
    journal
        .finish(&tenant, run(number), 0, &[last(kind)], &end)
        .await
        .unwrap();
}
