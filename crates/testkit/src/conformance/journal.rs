//! Conformance cases of the journal port. Each case gets an empty journal.

use std::sync::Arc;

use engine::Tenant;
use engine::port::{
    EncodedEvent, EventKind, IdempotencyClaim, IdempotencyMatch, Journal, JournalError, NewRun, RunEnd,
    RunKind, RunState,
};
use ir::RunId;

type SharedJournal = Arc<dyn Journal>;

/// Runs every case.
pub async fn suite<F>(empty: impl Fn() -> F)
where
    F: Future<Output = SharedJournal>,
{
    entries_are_read_in_order(empty().await).await;
    reading_starts_after_an_offset(empty().await).await;
    chunks_are_located_by_sequence_number(empty().await).await;
    chunks_are_located_among_other_events(empty().await).await;
    unknown_run_is_refused_by_every_method(empty().await).await;
    run_of_another_tenant_is_unknown(empty().await).await;
    run_is_created_once(empty().await).await;
    run_ends_exactly_once(empty().await).await;
    append_at_wrong_offset_is_refused(empty().await).await;
    one_of_concurrent_appends_at_an_offset_succeeds(empty().await).await;
    concurrent_runs_do_not_mix(empty().await).await;
    unfinished_runs_are_listed_oldest_first(empty().await).await;
    empty_batch_changes_nothing(empty().await).await;
    recoveries_of_running_runs_are_counted(empty().await).await;
    idempotency_key_creates_one_run(empty().await).await;
    one_of_concurrent_creates_with_a_key_succeeds(empty().await).await;
}

/// For persistent journals: `open` opens the same storage each time.
pub async fn reopening<F>(open: impl Fn() -> F)
where
    F: Future<Output = SharedJournal>,
{
    let tenant = Tenant::local();
    let (open_run, done_run) = (run(1), run(2));
    {
        let journal = open().await;
        for id in [open_run, done_run] {
            journal.create(&tenant, &new(id)).await.unwrap();
            journal.append(&tenant, id, 0, &chunks(1..=3)).await.unwrap();
        }
        journal
            .finish(&tenant, done_run, 3, &[last(EventKind::Final)], &good(9))
            .await
            .unwrap();
        // Dropped without closing, as a killed process would.
    }
    let journal = open().await;
    assert_eq!(bodies(&journal, open_run).await, ["1", "2", "3"]);
    assert_eq!(bodies(&journal, done_run).await, ["1", "2", "3", "end"]);
    let row = journal.find(&tenant, done_run).await.unwrap().unwrap();
    assert_eq!((row.state, row.finished), (RunState::Done, Some(good(9).finish)));
    let unfinished = journal.unfinished().await.unwrap();
    assert_eq!(
        unfinished.iter().map(|(_, row)| row.id).collect::<Vec<_>>(),
        [open_run]
    );
    journal
        .append(&tenant, open_run, 3, &chunks(4..=4))
        .await
        .unwrap();
}

async fn entries_are_read_in_order(journal: SharedJournal) {
    let tenant = Tenant::local();
    journal.create(&tenant, &new(run(1))).await.unwrap();
    journal.append(&tenant, run(1), 0, &chunks(1..=2)).await.unwrap();
    journal.append(&tenant, run(1), 2, &chunks(3..=5)).await.unwrap();
    assert_eq!(bodies(&journal, run(1)).await, ["1", "2", "3", "4", "5"]);
    let row = journal.find(&tenant, run(1)).await.unwrap().unwrap();
    assert_eq!((row.last_offset, row.state), (5, RunState::Running));
    assert_eq!((row.kind.module(), row.command.as_str()), (Some("m"), "{}"));
}

async fn reading_starts_after_an_offset(journal: SharedJournal) {
    let tenant = Tenant::local();
    journal.create(&tenant, &new(run(1))).await.unwrap();
    journal.append(&tenant, run(1), 0, &chunks(1..=5)).await.unwrap();
    let page = journal.read(&tenant, run(1), 2, 2).await.unwrap();
    assert_eq!(page.iter().map(|entry| entry.offset).collect::<Vec<_>>(), [3, 4]);
    assert!(journal.read(&tenant, run(1), 5, 10).await.unwrap().is_empty());
}

async fn chunks_are_located_by_sequence_number(journal: SharedJournal) {
    let tenant = Tenant::local();
    journal.create(&tenant, &new(run(1))).await.unwrap();
    let mut events = vec![last(EventKind::Meta)];
    events.extend(chunks(1..=2));
    journal.append(&tenant, run(1), 0, &events).await.unwrap();
    let found = journal.find_chunk(&tenant, run(1), 2).await.unwrap().unwrap();
    assert_eq!((found.offset, &*found.event.body), (3, "2"));
    for nowhere in [3, u64::MAX] {
        assert_eq!(journal.find_chunk(&tenant, run(1), nowhere).await.unwrap(), None);
    }
}

async fn chunks_are_located_among_other_events(journal: SharedJournal) {
    let tenant = Tenant::local();
    journal.create(&tenant, &new(run(1))).await.unwrap();
    // Between two chunks there are no, many or a few other events.
    let mut events = Vec::new();
    for seq in 1..=300 {
        let others = if seq < 100 { 0 } else { 5 * (seq % 40) / 39 };
        events.extend((0..others).map(|_| last(EventKind::Progress)));
        events.extend(chunks(seq..=seq));
    }
    events.push(last(EventKind::Final));
    let end = good(1);
    journal.finish(&tenant, run(1), 0, &events, &end).await.unwrap();
    for seq in 1..=300 {
        let found = journal.find_chunk(&tenant, run(1), seq).await.unwrap().unwrap();
        assert_eq!(
            (found.event.seq, &*found.event.body),
            (Some(seq), &*seq.to_string())
        );
        let place = events.iter().position(|event| event.seq == Some(seq)).unwrap();
        assert_eq!(found.offset, place as u64 + 1);
    }
    for seq in [0, 301, events.len() as u64, 1_000_000] {
        assert_eq!(
            journal.find_chunk(&tenant, run(1), seq).await.unwrap(),
            None,
            "{seq}"
        );
    }
}

async fn unknown_run_is_refused_by_every_method(journal: SharedJournal) {
    unknown_to(&journal, &Tenant::local(), run(1)).await;
}

async fn run_of_another_tenant_is_unknown(journal: SharedJournal) {
    journal.create(&Tenant::local(), &new(run(1))).await.unwrap();
    unknown_to(&journal, &Tenant::new("other"), run(1)).await;
    assert!(bodies(&journal, run(1)).await.is_empty());
}

async fn unknown_to(journal: &SharedJournal, tenant: &Tenant, id: RunId) {
    let unknown = |result: Result<(), JournalError>| {
        assert!(
            matches!(result, Err(JournalError::Unknown(run)) if run == id),
            "{result:?}"
        );
    };
    unknown(journal.append(tenant, id, 0, &chunks(1..=1)).await);
    unknown(
        journal
            .finish(tenant, id, 0, &[last(EventKind::Error)], &good(1))
            .await,
    );
    unknown(journal.read(tenant, id, 0, 1).await.map(drop));
    unknown(journal.find_chunk(tenant, id, 1).await.map(drop));
    unknown(journal.count_recovery(tenant, id).await.map(drop));
    assert_eq!(journal.find(tenant, id).await.unwrap(), None);
}

async fn recoveries_of_running_runs_are_counted(journal: SharedJournal) {
    let tenant = Tenant::local();
    for number in 1..=2 {
        journal.create(&tenant, &new(run(number))).await.unwrap();
    }
    for count in 1..=3 {
        assert_eq!(journal.count_recovery(&tenant, run(1)).await.unwrap(), count);
    }
    assert_eq!(journal.count_recovery(&tenant, run(2)).await.unwrap(), 1);
    let end = [last(EventKind::Final)];
    journal.finish(&tenant, run(1), 0, &end, &good(1)).await.unwrap();
    let ended = journal.count_recovery(&tenant, run(1)).await;
    assert!(matches!(ended, Err(JournalError::Unknown(_))), "{ended:?}");
}

async fn run_is_created_once(journal: SharedJournal) {
    let tenant = Tenant::local();
    journal.create(&tenant, &new(run(1))).await.unwrap();
    let again = journal.create(&tenant, &new(run(1))).await;
    assert!(matches!(again, Err(JournalError::Exists(_))), "{again:?}");
}

async fn run_ends_exactly_once(journal: SharedJournal) {
    let tenant = Tenant::local();
    journal.create(&tenant, &new(run(1))).await.unwrap();
    let failed = RunEnd::new(Some(String::from("E2010")), 7, Vec::new());
    let end = [last(EventKind::Error)];
    journal.finish(&tenant, run(1), 0, &end, &failed).await.unwrap();
    let again = journal.finish(&tenant, run(1), 1, &end, &good(8)).await;
    assert!(matches!(again, Err(JournalError::Ended(_))), "{again:?}");
    let late = journal.append(&tenant, run(1), 1, &chunks(1..=1)).await;
    assert!(matches!(late, Err(JournalError::Ended(_))), "{late:?}");
    let row = journal.find(&tenant, run(1)).await.unwrap().unwrap();
    assert_eq!((row.state, row.finished), (RunState::Failed, Some(failed.finish)));
    assert_eq!(bodies(&journal, run(1)).await, ["end"]);
}

async fn append_at_wrong_offset_is_refused(journal: SharedJournal) {
    let tenant = Tenant::local();
    journal.create(&tenant, &new(run(1))).await.unwrap();
    journal.append(&tenant, run(1), 0, &chunks(1..=2)).await.unwrap();
    for wrong in [0, 1, 3] {
        let refused = journal.append(&tenant, run(1), wrong, &chunks(3..=3)).await;
        assert!(matches!(refused, Err(JournalError::Fenced(_))), "{refused:?}");
    }
    assert_eq!(bodies(&journal, run(1)).await, ["1", "2"]);
}

async fn one_of_concurrent_appends_at_an_offset_succeeds(journal: SharedJournal) {
    let tenant = Tenant::local();
    journal.create(&tenant, &new(run(1))).await.unwrap();
    let attempts = (1..=8).map(|seq| {
        let (journal, tenant) = (journal.clone(), tenant.clone());
        async move { journal.append(&tenant, run(1), 0, &chunks(seq..=seq)).await }
    });
    let results = futures::future::join_all(attempts).await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    assert_eq!(bodies(&journal, run(1)).await.len(), 1);
}

async fn concurrent_runs_do_not_mix(journal: SharedJournal) {
    let tenant = Tenant::local();
    let writers = (1..=8).map(|number| {
        let (journal, tenant) = (journal.clone(), tenant.clone());
        async move {
            journal.create(&tenant, &new(run(number))).await.unwrap();
            for seq in 1..=10 {
                journal
                    .append(&tenant, run(number), seq - 1, &chunks(seq..=seq))
                    .await
                    .unwrap();
            }
        }
    });
    futures::future::join_all(writers).await;
    let expected: Vec<String> = (1..=10).map(|seq| seq.to_string()).collect();
    for number in 1..=8 {
        assert_eq!(bodies(&journal, run(number)).await, expected);
    }
}

async fn unfinished_runs_are_listed_oldest_first(journal: SharedJournal) {
    let local = Tenant::local();
    let other = Tenant::new("other");
    for (tenant, number, at_ms) in [(&local, 1, 30), (&other, 2, 10), (&local, 3, 20)] {
        let mut row = new(run(number));
        row.created_at_ms = at_ms;
        journal.create(tenant, &row).await.unwrap();
    }
    journal
        .finish(&local, run(3), 0, &[last(EventKind::Final)], &good(40))
        .await
        .unwrap();
    let listed = journal.unfinished().await.unwrap();
    let listed: Vec<_> = listed
        .iter()
        .map(|(tenant, row)| (tenant.as_str(), row.id))
        .collect();
    assert_eq!(listed, [("other", run(2)), ("local", run(1))]);
}

async fn empty_batch_changes_nothing(journal: SharedJournal) {
    let tenant = Tenant::local();
    journal.create(&tenant, &new(run(1))).await.unwrap();
    journal.append(&tenant, run(1), 0, &[]).await.unwrap();
    journal.append(&tenant, run(1), 0, &chunks(1..=1)).await.unwrap();
    assert_eq!(bodies(&journal, run(1)).await, ["1"]);
}

fn named(number: u128, client: &str, key: &str, body: &str, at_ms: u64, since_ms: u64) -> NewRun {
    NewRun {
        created_at_ms: at_ms,
        client: String::from(client),
        once: Some(IdempotencyClaim {
            key: String::from(key),
            fingerprint: String::from(body),
            since_ms,
        }),
        ..new(run(number))
    }
}

async fn idempotency_key_creates_one_run(journal: SharedJournal) {
    let (local, other) = (Tenant::local(), Tenant::new("other"));
    let first = named(1, "c", "k", "body", 100, 0);
    journal.create(&local, &first).await.unwrap();
    for (again, same_request) in [("body", true), ("another", false)] {
        let second = named(2, "c", "k", again, 200, 0);
        let holder = IdempotencyMatch {
            run: run(1),
            same_request,
        };
        let once = second.once.as_ref().unwrap();
        assert_eq!(
            journal.find_by_idempotency_key(&local, "c", once).await.unwrap(),
            Some(holder)
        );
        for (tenant, client) in [(&local, "d"), (&other, "c")] {
            assert_eq!(
                journal
                    .find_by_idempotency_key(tenant, client, once)
                    .await
                    .unwrap(),
                None
            );
        }
        let refused = journal.create(&local, &second).await;
        assert!(
            matches!(&refused, Err(JournalError::DuplicateKey(named)) if *named == holder),
            "{refused:?}"
        );
    }
    assert_eq!(journal.find(&local, run(2)).await.unwrap(), None);
    // A different key, client or tenant is a different run.
    journal
        .create(&local, &named(3, "c", "l", "body", 200, 0))
        .await
        .unwrap();
    journal
        .create(&local, &named(4, "d", "k", "body", 200, 0))
        .await
        .unwrap();
    journal
        .create(&other, &named(5, "c", "k", "body", 200, 0))
        .await
        .unwrap();
    // The end of the run does not release the key; only its age does.
    journal
        .finish(&local, run(1), 0, &[last(EventKind::Final)], &good(150))
        .await
        .unwrap();
    let refused = journal
        .create(&local, &named(6, "c", "k", "body", 300, 100))
        .await;
    assert!(
        matches!(refused, Err(JournalError::DuplicateKey { .. })),
        "{refused:?}"
    );
    let later = named(6, "c", "k", "body", 300, 101);
    let once = later.once.as_ref().unwrap();
    assert_eq!(
        journal.find_by_idempotency_key(&local, "c", once).await.unwrap(),
        None
    );
    journal.create(&local, &later).await.unwrap();
    assert!(journal.find(&local, run(1)).await.unwrap().is_some());
}

async fn one_of_concurrent_creates_with_a_key_succeeds(journal: SharedJournal) {
    let tenant = Tenant::local();
    let attempts = (1..=8).map(|number| {
        let (journal, tenant) = (journal.clone(), tenant.clone());
        async move {
            journal
                .create(&tenant, &named(number, "c", "k", "body", 1, 0))
                .await
        }
    });
    let results = futures::future::join_all(attempts).await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    assert_eq!(journal.unfinished().await.unwrap().len(), 1);
}

pub fn run(number: u128) -> RunId {
    RunId::from_parts(1, number)
}

pub fn new(id: RunId) -> NewRun {
    NewRun {
        id,
        kind: RunKind::Module(String::from("m")),
        command: String::from("{}"),
        created_at_ms: 1,
        client: String::from("c"),
        once: None,
    }
}

fn good(at_ms: u64) -> RunEnd {
    RunEnd::new(None, at_ms, Vec::new())
}

pub(super) fn chunks(seqs: std::ops::RangeInclusive<u64>) -> Vec<EncodedEvent> {
    seqs.map(|seq| EncodedEvent {
        kind: EventKind::Chunk,
        seq: Some(seq),
        body: Arc::from(seq.to_string()),
    })
    .collect()
}

pub(super) fn last(kind: EventKind) -> EncodedEvent {
    EncodedEvent {
        kind,
        seq: None,
        body: Arc::from("end"),
    }
}

async fn bodies(journal: &SharedJournal, id: RunId) -> Vec<String> {
    let entries = journal.read(&Tenant::local(), id, 0, 1000).await.unwrap();
    assert!(
        entries
            .iter()
            .map(|entry| entry.offset)
            .eq(1..=entries.len() as u64)
    );
    entries
        .iter()
        .map(|entry| String::from(&*entry.event.body))
        .collect()
}
